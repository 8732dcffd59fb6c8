#include "collectives/shared_memory/shared_memory_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "collectives/backends/reduce.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kAlign = 512; // bytes; pieces share no cache lines and split no elements

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from)
    std::memcpy(to, from, bytes);
}

} // namespace

struct SharedMemoryBackend::Transfer {
  struct Range {
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };

  const FlatCall& call;
  Kind kind;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t total = 0;                          // bytes of the input
  std::size_t slice = 0;                          // bytes of the input that belong to one rank
  std::size_t piece = SharedSegment::kStageBytes; // bytes of a slice in one block
  std::size_t blocks = 0;

  void set_pieces(std::size_t most) {
    blocks = std::max<std::size_t>(1, (slice + most - 1) / most);
    piece = std::max(kAlign, round_up((slice + blocks - 1) / blocks));
    blocks = std::max<std::size_t>(1, (slice + piece - 1) / piece);
  }

  /// Returns the range of piece `block` of rank `rank`'s slice.
  Range range(std::size_t rank, std::size_t block) const {
    const auto begin = rank * slice + block * piece;
    const auto end = std::min({begin + piece, (rank + 1) * slice, total});
    return {begin, end > begin ? end - begin : 0};
  }

  /// Returns the range of piece `block` of the data to or from rank `rank`, given `splits`.
  Range range(std::span<const std::size_t> splits, std::size_t rank, std::size_t block) const {
    const auto first = splits.begin() + static_cast<std::ptrdiff_t>(rank);
    const auto begin = std::min(splits[rank], block * piece);
    return {std::accumulate(splits.begin(), first, begin), std::min(splits[rank] - begin, piece)};
  }
};

SharedMemoryBackend::SharedMemoryBackend(int rank, std::shared_ptr<SharedSegment> segment,
                                         std::chrono::milliseconds timeout)
    : FlatBackend(rank, segment->size()), segment_(segment), meeting_(segment, rank, timeout) {}

void SharedMemoryBackend::run(const FlatCall& call) {
  const bool uneven = call.fingerprint.dimensions == Fingerprint::kNoShape;
  const std::size_t bytes = call.input.defined() ? call.input.nbytes() : 0;
  // The condition is equal on all ranks, because the shapes are.
  if (bytes <= SharedSegment::kSmallBytes && !uneven)
    run_small(call);
  else
    run_large(call);
}

void SharedMemoryBackend::run_small(const FlatCall& call) {
  const auto kind = call.fingerprint.kind;
  const auto which = small_calls_++ % 2;
  const int me = getRank();
  const auto* in =
      call.input.defined() ? static_cast<const std::byte*>(call.input.const_data_ptr()) : nullptr;
  const std::size_t bytes = call.input.defined() ? call.input.nbytes() : 0;
  if (kind != Kind::broadcast || me == call.fingerprint.root)
    copy_bytes(segment_->small(me, which), in, bytes);
  meeting_.meet(call);
  if (bytes == 0)
    return;
  auto* out = static_cast<std::byte*>(call.output.mutable_data_ptr());
  const auto part = bytes / static_cast<std::size_t>(getSize());
  if (kind == Kind::broadcast) {
    if (me != call.fingerprint.root)
      copy_bytes(out, segment_->small(call.fingerprint.root, which), bytes);
    return;
  }
  std::array<const std::byte*, kMostSharedRanks> from;
  const auto begin = kind == Kind::reduce_scatter || kind == Kind::all_to_all
                         ? part * static_cast<std::size_t>(me)
                         : 0;
  for (int rank = 0; rank < getSize(); ++rank)
    from[static_cast<std::size_t>(rank)] = (rank == me ? in : segment_->small(rank, which)) + begin;
  const auto count = static_cast<std::size_t>(getSize());
  if (kind == Kind::all_gather || kind == Kind::all_to_all) {
    const auto size = kind == Kind::all_gather ? bytes : part;
    for (std::size_t rank = 0; rank < count; ++rank)
      copy_bytes(out + rank * size, from[rank], size);
    return;
  }
  const auto type = static_cast<c10::ScalarType>(call.fingerprint.type);
  reduce_ranks(type, static_cast<ReduceOp>(call.fingerprint.op), std::span(from).first(count),
               {&out, 1}, (kind == Kind::all_reduce ? bytes : part) / c10::elementSize(type));
}

SharedMemoryBackend::Transfer SharedMemoryBackend::transfer_of(const FlatCall& call) const {
  const auto ranks = static_cast<std::size_t>(getSize());
  Transfer transfer{.call = call, .kind = call.fingerprint.kind};
  transfer.in = static_cast<const std::byte*>(call.input.const_data_ptr());
  transfer.out = static_cast<std::byte*>(call.output.mutable_data_ptr());
  transfer.total = call.input.nbytes();
  const auto shared = SharedSegment::kStageBytes / ranks / kAlign * kAlign;
  switch (transfer.kind) {
  case Kind::all_reduce:
    transfer.slice = round_up((transfer.total + ranks - 1) / ranks);
    transfer.set_pieces(shared);
    break;
  case Kind::reduce_scatter:
    transfer.slice = transfer.total / ranks;
    transfer.set_pieces(shared);
    break;
  case Kind::all_to_all:
    transfer.piece = shared;
    break;
  default:
    transfer.slice = transfer.total;
    transfer.set_pieces(SharedSegment::kStageBytes);
  }
  return transfer;
}

/// Each block takes three steps (two if nothing is reduced or no result is copied out), and all
/// ranks meet after each step. A stage is reused two blocks later. By then the other ranks have
/// read their slices of it, so these may be overwritten. The rank's own slice may still be in use,
/// but it is not overwritten.
void SharedMemoryBackend::run_large(const FlatCall& call) {
  auto transfer = transfer_of(call);
  const bool reduces = transfer.kind == Kind::all_reduce || transfer.kind == Kind::reduce_scatter;
  const bool drains = transfer.kind != Kind::reduce_scatter;
  fill(transfer, 0);
  meeting_.meet(call);
  if (transfer.kind == Kind::all_to_all)
    transfer.blocks =
        std::max<std::size_t>(1, (meeting_.largest_split() + transfer.piece - 1) / transfer.piece);
  const std::size_t behind = reduces && drains ? 2 : 1; // steps from a block's first to its last
  for (std::size_t step = 1; step < transfer.blocks + behind; ++step) {
    if (step > 1)
      meeting_.step();
    if (step < transfer.blocks)
      fill(transfer, step);
    if (reduces && step - 1 < transfer.blocks)
      reduce(transfer, step - 1);
    if (drains && step >= behind)
      drain(transfer, step - behind);
  }
  blocks_ += transfer.blocks;
}

void SharedMemoryBackend::fill(const Transfer& transfer, std::size_t block) const {
  const auto me = static_cast<std::size_t>(getRank());
  auto* stage = segment_->stage(getRank(), (blocks_ + block) % 2);
  if (transfer.kind == Kind::all_gather || transfer.kind == Kind::broadcast) {
    const auto range = transfer.range(0, block);
    if (transfer.kind == Kind::all_gather || getRank() == transfer.call.fingerprint.root)
      copy_bytes(stage, transfer.in + range.begin, range.bytes);
    return;
  }
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(getSize()); ++rank) {
    if (rank == me)
      continue;
    const auto range = transfer.kind == Kind::all_to_all
                           ? transfer.range(transfer.call.in_splits, rank, block)
                           : transfer.range(rank, block);
    copy_bytes(stage + rank * transfer.piece, transfer.in + range.begin, range.bytes);
  }
}

void SharedMemoryBackend::reduce(const Transfer& transfer, std::size_t block) const {
  const auto me = static_cast<std::size_t>(getRank());
  const auto which = (blocks_ + block) % 2;
  const auto range = transfer.range(me, block);
  std::array<const std::byte*, kMostSharedRanks> from;
  for (int rank = 0; rank < getSize(); ++rank)
    from[static_cast<std::size_t>(rank)] = rank == getRank()
                                               ? transfer.in + range.begin
                                               : segment_->stage(rank, which) + me * transfer.piece;
  std::array<std::byte*, 2> to{transfer.out + range.begin,
                               segment_->stage(getRank(), which) + me * transfer.piece};
  if (transfer.kind == Kind::reduce_scatter)
    to[0] -= me * transfer.slice;
  const auto type = static_cast<c10::ScalarType>(transfer.call.fingerprint.type);
  reduce_ranks(type, static_cast<ReduceOp>(transfer.call.fingerprint.op),
               std::span(from).first(static_cast<std::size_t>(getSize())),
               std::span(to).first(transfer.kind == Kind::all_reduce && getSize() > 1 ? 2 : 1),
               range.bytes / c10::elementSize(type));
}

void SharedMemoryBackend::drain(const Transfer& transfer, std::size_t block) const {
  const auto me = static_cast<std::size_t>(getRank());
  const auto which = (blocks_ + block) % 2;
  const auto ranks = static_cast<std::size_t>(getSize());
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto rank = (me + i) % ranks; // ranks start at different peers
    const auto* stage = segment_->stage(static_cast<int>(rank), which);
    if (transfer.kind == Kind::all_reduce) {
      const auto range = transfer.range(rank, block);
      if (rank != me)
        copy_bytes(transfer.out + range.begin, stage + rank * transfer.piece, range.bytes);
    } else if (transfer.kind == Kind::all_to_all) {
      const auto range = transfer.range(transfer.call.out_splits, rank, block);
      const auto mine = transfer.range(transfer.call.in_splits, rank, block);
      copy_bytes(transfer.out + range.begin,
                 rank == me ? transfer.in + mine.begin : stage + me * transfer.piece, range.bytes);
    } else if (transfer.kind == Kind::all_gather) {
      const auto range = transfer.range(0, block);
      copy_bytes(transfer.out + rank * transfer.total + range.begin,
                 rank == me ? transfer.in + range.begin : stage, range.bytes);
    } else if (static_cast<int>(rank) == transfer.call.fingerprint.root && rank != me) {
      const auto range = transfer.range(0, block);
      copy_bytes(transfer.out + range.begin, stage, range.bytes);
    }
  }
}

} // namespace troupe::collectives
