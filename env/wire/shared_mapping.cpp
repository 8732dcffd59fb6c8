#include "env/wire/shared_mapping.hpp"

#include <fcntl.h>
#include <utility>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace troupe::env::wire {

namespace {

/// Whether reading the file can never fail: its size is fixed and its pages are ordinary ones (a
/// pool of huge pages can run out).
bool is_sound(const Descriptor& file, std::uint64_t bytes) {
  constexpr int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  struct stat status {};
  struct statfs system {};
  return seals >= 0 && (seals & needed) == needed && ::fstat(file.number(), &status) == 0
         && status.st_size >= 0 && static_cast<std::uint64_t>(status.st_size) == bytes
         && ::fstatfs(file.number(), &system) == 0 && system.f_type == TMPFS_MAGIC;
}

} // namespace

class SharedMapping::View : public SharedBlock {
public:
  View(std::shared_ptr<SharedMapping> mapping, const Reference& reference,
       std::span<std::byte> where)
      : SharedBlock(where),
        mapping_(std::move(mapping)),
        slot_(reference.slot),
        generation_(reference.generation) {}
  ~View() override {
    if (mapping_->ledger_map_.is_in_this_process())
      mapping_->ledger_->slots[slot_].store(released(generation_), std::memory_order_release);
  }

private:
  std::shared_ptr<SharedMapping> mapping_;
  std::uint16_t slot_;
  std::uint32_t generation_;
};

std::shared_ptr<SharedMapping> SharedMapping::open(const Descriptor& frames,
                                                   const Descriptor& ledger, std::uint64_t bytes,
                                                   std::size_t max_bytes) {
  if (bytes == 0 || bytes > max_bytes || !is_sound(frames, bytes)
      || !is_sound(ledger, sizeof(Ledger)))
    return nullptr;
  const auto made = std::shared_ptr<SharedMapping>(new SharedMapping);
  made->frames_ = Mapped(frames.number(), static_cast<std::size_t>(bytes), PROT_READ);
  made->ledger_map_ = Mapped(ledger.number(), sizeof(Ledger), PROT_READ | PROT_WRITE);
  if (!made->frames_ || !made->ledger_map_)
    return nullptr;
  made->ledger_ = reinterpret_cast<Ledger*>(made->ledger_map_.bytes());
  return made;
}

std::shared_ptr<SharedBlock> SharedMapping::hold(const Reference& reference) {
  const std::uint64_t offset = std::uint64_t{reference.offset} * kOffsetUnit;
  if (reference.slot >= kSlots || offset > frames_.size()
      || reference.size > frames_.size() - offset)
    return nullptr;
  auto view = std::make_shared<View>(shared_from_this(), reference,
                                     std::span(frames_.bytes() + offset, reference.size));
  ledger_->slots[reference.slot].store(held(reference.generation), std::memory_order_relaxed);
  return view;
}

void SharedMapping::seen(std::uint64_t sequence) {
  ledger_->seen.store(sequence, std::memory_order_release);
}

} // namespace troupe::env::wire
