#include "collectives/backends/thread_backend.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "collectives/backends/reduce.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kSmallBytes = 32 * 1024; // up to here, the last rank to arrive works for all
constexpr std::size_t kLine = 64;              // elements; keeps slices from sharing a cache line

template <class T>
class Pointers { // on the stack for up to 16 ranks, else on the heap
public:
  explicit Pointers(int size) : size_(static_cast<std::size_t>(size)) {
    if (size_ > few_.size())
      many_.resize(size_);
  }
  T& operator[](int i) { return data()[i]; }
  std::span<T> span() { return {data(), size_}; }

private:
  T* data() { return many_.empty() ? few_.data() : many_.data(); }
  std::size_t size_;
  std::array<T, 16> few_{};
  std::vector<T> many_;
};

} // namespace

ThreadBackend::ThreadBackend(int rank, std::shared_ptr<ThreadRendezvous> meeting)
    : FlatBackend(rank, meeting->size()), meeting_(std::move(meeting)) {}

ThreadBackend::~ThreadBackend() {
  meeting_->leave(getRank());
}

void ThreadBackend::poison(const std::string& message) {
  meeting_->poison(message);
}

void ThreadBackend::run(const FlatCall& call) {
  const auto part = part_of(call.fingerprint.kind);
  auto& slot = meeting_->slot(getRank());
  slot.input = call.input;
  slot.output = call.output;
  slot.in =
      call.input.defined() ? static_cast<const std::byte*>(call.input.const_data_ptr()) : nullptr;
  slot.out =
      call.output.defined() ? static_cast<std::byte*>(call.output.mutable_data_ptr()) : nullptr;
  slot.in_bytes = call.input.defined() ? call.input.nbytes() : 0;
  slot.out_bytes = call.output.defined() ? call.output.nbytes() : 0;
  slot.in_splits = call.in_splits;
  slot.out_splits = call.out_splits;
  // Equal on all ranks, because the shapes are.
  const bool small = std::max(slot.in_bytes, slot.out_bytes) <= kSmallBytes
                     && call.fingerprint.dimensions != Fingerprint::kNoShape;
  const auto last = [this, &call, part, small] {
    if (call.fingerprint.kind == Kind::all_to_all)
      check_splits();
    for (int rank = 0; small && rank < getSize(); ++rank)
      (this->*part)(rank, call.fingerprint);
  };
  meeting_->meet(getRank(), call.fingerprint, std::ref(last));
  if (!small) {
    (this->*part)(getRank(), call.fingerprint);
    meeting_->part(getRank());
  }
  slot.input.reset();
  slot.output.reset();
}

ThreadBackend::Part ThreadBackend::part_of(Kind kind) {
  switch (kind) {
  case Kind::all_reduce:
    return &ThreadBackend::reduce_part;
  case Kind::all_gather:
    return &ThreadBackend::gather_part;
  case Kind::broadcast:
    return &ThreadBackend::broadcast_part;
  case Kind::reduce_scatter:
    return &ThreadBackend::scatter_part;
  case Kind::all_to_all:
    return &ThreadBackend::exchange_part;
  case Kind::barrier:
    break;
  }
  return &ThreadBackend::barrier_part;
}

void ThreadBackend::reduce_part(int rank, const Fingerprint& call) {
  const auto type = static_cast<c10::ScalarType>(call.type);
  const auto element = c10::elementSize(type);
  const auto elements = meeting_->slot(0).in_bytes / element;
  const auto ranks = static_cast<std::size_t>(getSize());
  const auto slice = ((elements + ranks - 1) / ranks + kLine - 1) / kLine * kLine;
  const auto begin = std::min(elements, slice * static_cast<std::size_t>(rank));
  const auto count = std::min(elements, begin + slice) - begin;
  Pointers<const std::byte*> in(getSize());
  Pointers<std::byte*> out(getSize());
  for (int i = 0; i < getSize(); ++i) {
    in[i] = meeting_->slot(i).in + begin * element;
    out[i] = meeting_->slot(i).out + begin * element;
  }
  reduce_ranks(type, static_cast<ReduceOp>(call.op), in.span(), out.span(), count);
}

void ThreadBackend::scatter_part(int rank, const Fingerprint& call) {
  const auto type = static_cast<c10::ScalarType>(call.type);
  const auto bytes = meeting_->slot(rank).out_bytes;
  Pointers<const std::byte*> in(getSize());
  for (int i = 0; i < getSize(); ++i)
    in[i] = meeting_->slot(i).in + bytes * static_cast<std::size_t>(rank);
  std::byte* out = meeting_->slot(rank).out;
  reduce_ranks(type, static_cast<ReduceOp>(call.op), in.span(), {&out, 1},
               bytes / c10::elementSize(type));
}

void ThreadBackend::broadcast_part(int rank, const Fingerprint& call) {
  const auto& from = meeting_->slot(call.root);
  if (rank != call.root && from.in_bytes > 0)
    std::memcpy(meeting_->slot(rank).out, from.in, from.in_bytes);
}

void ThreadBackend::gather_part(int rank, const Fingerprint&) {
  std::byte* out = meeting_->slot(rank).out;
  for (int i = 0; i < getSize(); ++i) {
    const auto& from = meeting_->slot(i);
    if (from.in_bytes > 0)
      std::memcpy(out, from.in, from.in_bytes);
    out += from.in_bytes;
  }
}

void ThreadBackend::exchange_part(int rank, const Fingerprint&) {
  std::byte* out = meeting_->slot(rank).out;
  const auto to = static_cast<std::size_t>(rank);
  for (int i = 0; i < getSize(); ++i) {
    const auto& from = meeting_->slot(i);
    const auto begin =
        std::accumulate(from.in_splits.begin(),
                        from.in_splits.begin() + static_cast<std::ptrdiff_t>(to), std::size_t{0});
    const auto bytes = from.in_splits[to];
    if (bytes > 0)
      std::memcpy(out, from.in + begin, bytes);
    out += bytes;
  }
}

void ThreadBackend::check_splits() const {
  for (int from = 0; from < getSize(); ++from)
    for (int to = 0; to < getSize(); ++to) {
      const auto sent = meeting_->slot(from).in_splits[static_cast<std::size_t>(to)];
      const auto taken = meeting_->slot(to).out_splits[static_cast<std::size_t>(from)];
      if (sent != taken)
        throw CollectiveError(describe_splits(from, to, sent, taken));
    }
}

} // namespace troupe::collectives
