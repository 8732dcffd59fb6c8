#include "collectives/backends/tcp_transfer.hpp"

#include <algorithm>

#include "collectives/backends/reduce.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kReducedBlock = std::size_t{64} << 10; // bytes; a few blocks fit the L2 cache
constexpr std::size_t kBlocks = 8; // number of blocks that a fast rank may be ahead
constexpr std::size_t kStaged = kReducedBlock * kBlocks;
constexpr std::size_t kSliceUnit = 64; // elements

std::size_t at_rank(int rank) {
  return static_cast<std::size_t>(rank);
}

} // namespace

PartTransfer::PartTransfer(std::vector<std::span<const std::byte>> out,
                           std::vector<std::span<std::byte>> in)
    : out_(std::move(out)), in_(std::move(in)) {
  for (const auto part : out_)
    left_ += part.size();
  for (const auto part : in_)
    left_ += part.size();
}

void PartTransfer::sent(int peer, std::size_t bytes) {
  auto& part = out_[index(peer)];
  part = part.subspan(bytes);
  left_ -= bytes;
}

void PartTransfer::received(int peer, std::size_t bytes) {
  auto& part = in_[index(peer)];
  part = part.subspan(bytes);
  left_ -= bytes;
}

BroadcastTransfer::BroadcastTransfer(int rank, int size, int root, std::span<std::byte> data)
    : rank_(rank), root_(root), peers_(at_rank(size)) {
  const auto others = at_rank(size - 1);
  const auto slice = (data.size() + others - 1) / others;
  std::size_t begin = 0;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == root)
      continue;
    const auto bytes = std::min(slice, data.size() - begin);
    peers_[at_rank(peer)].slice = data.subspan(begin, bytes);
    begin += bytes;
  }
  for (int peer = 0; peer < size; ++peer)
    left_ += peer == rank ? 0 : to_send(peer);
  left_ += rank == root ? 0 : data.size();
}

std::size_t BroadcastTransfer::to_send(int peer) const {
  if (peer == root_)
    return 0;
  return peers_[at_rank(rank_ == root_ ? peer : rank_)].slice.size();
}

std::span<const std::byte> BroadcastTransfer::next_out(int peer) {
  const auto sent = peers_[at_rank(peer)].sent;
  if (peer == root_ || peer == rank_)
    return {};
  if (rank_ == root_)
    return peers_[at_rank(peer)].slice.subspan(sent);
  const auto arrived = peers_[at_rank(root_)].received; // bytes of this rank's slice
  return peers_[at_rank(rank_)].slice.subspan(sent, arrived - sent);
}

void BroadcastTransfer::sent(int peer, std::size_t bytes) {
  peers_[at_rank(peer)].sent += bytes;
  left_ -= bytes;
}

std::span<std::byte> BroadcastTransfer::next_in(int peer) {
  if (rank_ == root_ || peer == rank_)
    return {};
  const auto& slice = peers_[at_rank(peer == root_ ? rank_ : peer)].slice;
  return slice.subspan(peers_[at_rank(peer)].received);
}

void BroadcastTransfer::received(int peer, std::size_t bytes) {
  peers_[at_rank(peer)].received += bytes;
  left_ -= bytes;
}

ReduceTransfer::ReduceTransfer(int rank, int size, const Call& call,
                               std::vector<std::byte>& staging)
    : rank_(rank), call_(call), peers_(at_rank(size)), inputs_(at_rank(size)) {
  const auto element = c10::elementSize(call.type);
  const auto ranks = at_rank(size);
  auto slice = call.elements / ranks; // elements per rank; for a scatter
  if (!call.scatter)
    slice = ((call.elements + ranks - 1) / ranks + kSliceUnit - 1) / kSliceUnit * kSliceUnit;
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto begin = std::min(call.elements, slice * i);
    peers_[i].begin = begin * element;
    peers_[i].bytes = (std::min(call.elements, begin + slice) - begin) * element;
  }
  mine_ = peers_[at_rank(rank)].bytes;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank)
      continue;
    const auto theirs = peers_[at_rank(peer)].bytes;
    left_ += theirs + (takes_results(peer) ? mine_ : 0);  // outgoing
    left_ += mine_ + (takes_results(rank_) ? theirs : 0); // incoming
  }
  if (staging.size() < ranks * kStaged)
    staging.resize(ranks * kStaged);
  staging_ = staging.data();
}

bool ReduceTransfer::takes_results(int rank) const {
  return !call_.scatter && (call_.root == kAll || call_.root == rank);
}

std::byte* ReduceTransfer::result() const {
  return call_.output + (call_.scatter ? 0 : peers_[at_rank(rank_)].begin);
}

std::byte* ReduceTransfer::staged(int peer) const {
  return staging_ + at_rank(peer) * kStaged;
}

std::span<const std::byte> ReduceTransfer::next_out(int peer) {
  const auto& to = peers_[at_rank(peer)];
  if (peer == rank_)
    return {};
  if (to.out < to.bytes)
    return {call_.input + to.begin + to.out, to.bytes - to.out};
  if (!takes_results(peer))
    return {};
  const auto done = to.out - to.bytes; // bytes of this rank's results
  return {result() + done, reduced_ - done};
}

void ReduceTransfer::sent(int peer, std::size_t bytes) {
  peers_[at_rank(peer)].out += bytes;
  left_ -= bytes;
}

std::span<std::byte> ReduceTransfer::next_in(int peer) {
  const auto& from = peers_[at_rank(peer)];
  if (peer == rank_)
    return {};
  if (from.in < mine_) {
    const auto place = from.in % kStaged;
    const auto room = reduced_ / kReducedBlock * kReducedBlock + kStaged - from.in;
    return {staged(peer) + place, std::min({room, kStaged - place, mine_ - from.in})};
  }
  if (!takes_results(rank_))
    return {};
  // A result overwrites this rank's input. It arrives only after that input was sent.
  const auto done = from.in - mine_;
  return {call_.output + from.begin + done, from.bytes - done};
}

void ReduceTransfer::received(int peer, std::size_t bytes) {
  auto& from = peers_[at_rank(peer)];
  const bool input = from.in < mine_;
  from.in += bytes;
  left_ -= bytes;
  if (input)
    reduce_blocks();
}

void ReduceTransfer::reduce_blocks() {
  while (reduced_ < mine_) {
    const auto bytes = std::min(kReducedBlock, mine_ - reduced_);
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (i != at_rank(rank_) && peers_[i].in < reduced_ + bytes)
        return;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      inputs_[i] = i == at_rank(rank_) ? call_.input + peers_[i].begin + reduced_
                                       : staged(static_cast<int>(i)) + reduced_ % kStaged;
    std::byte* const output = result() + reduced_;
    reduce_ranks(call_.type, call_.op, inputs_, {&output, 1}, bytes / c10::elementSize(call_.type));
    reduced_ += bytes;
  }
}

} // namespace troupe::collectives
