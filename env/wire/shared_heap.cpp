#include "env/wire/shared_heap.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <utility>

namespace troupe::env::wire {

namespace {

constexpr std::size_t kCommit = std::size_t{256} << 10;      // bytes of memory committed at a time
constexpr std::size_t kMostFrame = 0xffffffff - kOffsetUnit; // stored in 32 bits

std::size_t whole_units(std::size_t size) {
  return (size + kOffsetUnit - 1) / kOffsetUnit * kOffsetUnit;
}

/// An anonymous file of fixed, sealed size.
Descriptor sealed_file(const char* what, std::size_t bytes) {
  Descriptor file(::memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0)
    return {};
  return file;
}

bool seal(const Descriptor& file, int more) {
  return ::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | more) == 0
         && ::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SEAL) == 0;
}

} // namespace

class SharedHeap::Lease : public SharedBlock {
public:
  Lease(std::shared_ptr<SharedHeap> heap, std::uint16_t number, Slot& slot,
        std::span<std::byte> where)
      : SharedBlock(where), heap_(std::move(heap)), number_(number), slot_(slot) {}
  ~Lease() override {
    State leased = State::leased; // not sent, so it is free at once
    slot_.state.compare_exchange_strong(leased, State::returned);
  }
  const SharedHeap* heap() const override { return heap_.get(); }
  std::uint16_t number() const { return number_; }

private:
  std::shared_ptr<SharedHeap> heap_;
  std::uint16_t number_;
  Slot& slot_; // of the heap
};

std::shared_ptr<SharedHeap> SharedHeap::make(std::size_t bytes) {
  const auto heap = std::shared_ptr<SharedHeap>(new SharedHeap);
  heap->frames_file_ = sealed_file("troupe-frames", bytes);
  heap->ledger_file_ = sealed_file("troupe-ledger", sizeof(Ledger));
  if (!heap->frames_file_ || !heap->ledger_file_)
    return nullptr;
  heap->frames_ = Mapped(heap->frames_file_.number(), bytes, PROT_READ | PROT_WRITE);
  heap->ledger_map_ = Mapped(heap->ledger_file_.number(), sizeof(Ledger), PROT_READ);
  // From here on, no other process can map the frames for writing.
  if (!heap->frames_ || !heap->ledger_map_ || !seal(heap->frames_file_, F_SEAL_FUTURE_WRITE)
      || !seal(heap->ledger_file_, 0))
    return nullptr;
  heap->ledger_ = reinterpret_cast<const Ledger*>(heap->ledger_map_.bytes());
  if (!heap->commit(1)) // fails if the system is too old
    return nullptr;
  heap->room_.push_back({0, bytes / kOffsetUnit * kOffsetUnit});
  return heap;
}

bool SharedHeap::has_slot() {
  if (free_slots_.empty() && slots_.size() < kSlots) {
    free_slots_.push_back(static_cast<std::uint16_t>(slots_.size()));
    slots_.emplace_back();
  }
  return !free_slots_.empty();
}

/// First fit at the lowest address, because recently released memory is still in the caches.
std::optional<std::size_t> SharedHeap::place(std::size_t size) {
  if (!has_slot())
    return std::nullopt;
  const auto at = std::find_if(room_.begin(), room_.end(),
                               [size](const Range& range) { return range.size >= size; });
  if (at == room_.end() || !commit(at->offset + size))
    return std::nullopt;
  const std::size_t offset = at->offset;
  at->offset += size;
  at->size -= size;
  if (at->size == 0)
    room_.erase(at);
  return offset;
}

/// Commits all memory before `end` now. If the system runs out of memory, touching uncommitted
/// pages later would kill the process.
bool SharedHeap::commit(std::size_t end) {
  if (end <= committed_)
    return true;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t upto =
      std::min(std::max((end + page - 1) / page * page, committed_ + kCommit), frames_.size());
  while (::madvise(frames_.bytes() + committed_, upto - committed_, MADV_POPULATE_WRITE) != 0)
    if (errno != EINTR)
      return false;
  committed_ = upto;
  return true;
}

void SharedHeap::close_files() {
  frames_file_ = {};
  ledger_file_ = {};
}

std::shared_ptr<SharedBlock> SharedHeap::allocate(std::size_t size) {
  if (size == 0 || size > std::min(frames_.size(), kMostFrame))
    return nullptr;
  take_back_oldest();
  const std::size_t whole = whole_units(size);
  auto offset = place(whole);
  if (!offset && !outstanding_.empty()) {
    take_back_all();
    offset = place(whole);
  }
  if (!offset)
    return nullptr;
  const std::uint16_t number = free_slots_.back();
  Slot& slot = slots_[number];
  auto lease = std::make_shared<Lease>(shared_from_this(), number, slot,
                                       std::span(frames_.bytes() + *offset, size));
  outstanding_.push_back(number);
  free_slots_.pop_back();
  slot.range = {*offset, whole};
  ++slot.generation;
  slot.state = State::leased;
  used_ += whole;
  return lease;
}

Reference SharedHeap::send(const SharedBlock& block, std::uint64_t sequence) {
  const std::uint16_t number = static_cast<const Lease&>(block).number();
  Slot& slot = slots_[number];
  slot.sequence = sequence;
  slot.state = State::sent;
  return {.place = 0,
          .slot = number,
          .generation = slot.generation,
          .offset = static_cast<std::uint32_t>(slot.range.offset / kOffsetUnit),
          .size = static_cast<std::uint32_t>(block.bytes().size())};
}

/// Whether the slot is free: released by the receiver, or lost, that is, neither released nor held
/// although a later message has arrived. `seen` must have been read before.
bool SharedHeap::is_done(std::uint16_t number, std::uint64_t seen) const {
  const Slot& slot = slots_[number];
  const State state = slot.state;
  if (state != State::sent)
    return state == State::returned;
  const std::uint64_t word = ledger_->slots[number].load(std::memory_order_acquire);
  return word == released(slot.generation)
         || (word != held(slot.generation) && slot.sequence <= seen);
}

void SharedHeap::take_back_oldest() {
  const std::uint64_t seen = ledger_->seen.load(std::memory_order_acquire);
  for (; !outstanding_.empty() && is_done(outstanding_.front(), seen); outstanding_.pop_front()) {
    free_slots_.push_back(outstanding_.front());
    give(slots_[outstanding_.front()].range);
  }
}

void SharedHeap::take_back_all() {
  const std::uint64_t seen = ledger_->seen.load(std::memory_order_acquire);
  std::deque<std::uint16_t> left;
  for (const std::uint16_t number : outstanding_) {
    if (is_done(number, seen)) {
      free_slots_.push_back(number);
      give(slots_[number].range);
    } else
      left.push_back(number);
  }
  outstanding_.swap(left);
}

void SharedHeap::give(const Range& range) {
  used_ -= range.size;
  auto next =
      std::upper_bound(room_.begin(), room_.end(), range.offset,
                       [](std::size_t offset, const Range& room) { return offset < room.offset; });
  const bool joins_next = next != room_.end() && range.offset + range.size == next->offset;
  if (next != room_.begin() && std::prev(next)->offset + std::prev(next)->size == range.offset) {
    std::prev(next)->size += range.size + (joins_next ? next->size : 0);
    if (joins_next)
      room_.erase(next);
  } else if (joins_next)
    *next = {range.offset, range.size + next->size};
  else
    room_.insert(next, range);
}

std::size_t SharedHeap::in_use() {
  take_back_all();
  return used_;
}

} // namespace troupe::env::wire
