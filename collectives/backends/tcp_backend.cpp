#include "collectives/backends/tcp_backend.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <poll.h>

#include "collectives/backends/reduce.hpp"

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTurn = std::size_t{256} << 10;      // bytes of one connection per turn
constexpr std::size_t kSmallTotal = std::size_t{64} << 10; // total bytes to all ranks

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::span<std::byte> bytes_to(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

void copy_bytes(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty() && from.data() != to)
    std::memcpy(to, from.data(), from.size());
}

bool is_reduction(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter;
}

} // namespace

TcpBackend::TcpBackend(int rank, int size, std::vector<SecureSocket> data,
                       std::shared_ptr<ControlMesh> mesh, c10::intrusive_ptr<c10d::Store> store,
                       std::chrono::milliseconds timeout)
    : FlatBackend(rank, size),
      data_(std::move(data)),
      mesh_(std::move(mesh)),
      store_(std::move(store)),
      timeout_(timeout) {}

void TcpBackend::run(const FlatCall& call) {
  const at::NoGradGuard guard;
  if (getSize() == 1) {
    mesh_->agree(call.fingerprint);
    if (call.input.defined())
      copy_bytes(bytes_of(call.input), bytes_to(call.output).data());
    return;
  }
  if (call.fingerprint.dimensions == Fingerprint::kNoShape)
    return exchange_splits(call);
  if (is_small(call))
    return run_small(call);
  const auto agreed = mesh_->agree(call.fingerprint);
  move(*transfer_of(call), agreed);
}

/// The result is the same on all ranks whose fingerprints are equal.
bool TcpBackend::is_small(const FlatCall& call) const {
  return !call.input.defined()
         || call.input.nbytes() * static_cast<std::size_t>(getSize() - 1)
                <= std::min(kSmallTotal, kMostPayload * static_cast<std::size_t>(getSize() - 1));
}

/// Every rank receives the input of all others and computes its own result.
void TcpBackend::run_small(const FlatCall& call) {
  const auto kind = call.fingerprint.kind;
  const bool gives =
      kind != Kind::barrier && (kind != Kind::broadcast || call.fingerprint.root == getRank());
  const auto mine = gives ? bytes_of(call.input) : std::span<const std::byte>();
  const auto agreed = mesh_->agree(call.fingerprint, mine, &payloads_);
  if (kind == Kind::barrier)
    return;
  for (int rank = 0; rank < getSize(); ++rank) {
    const bool given = kind != Kind::broadcast || call.fingerprint.root == rank;
    auto& payload = payloads_[static_cast<std::size_t>(rank)];
    if (rank != getRank() && payload.size() != (given ? call.input.nbytes() : 0))
      mesh_->data_failed(agreed, rank_name(rank) + " sent " + std::to_string(payload.size())
                                     + " bytes with its call");
  }
  if (is_reduction(kind))
    return reduce_small(call, payloads_);
  const auto from = [&](int rank) {
    return rank == getRank()
               ? mine
               : std::span<const std::byte>(payloads_[static_cast<std::size_t>(rank)]);
  };
  auto* to = bytes_to(call.output).data();
  if (kind == Kind::broadcast)
    return copy_bytes(from(call.fingerprint.root), to);
  const auto part = call.output.nbytes() / static_cast<std::size_t>(getSize());
  for (int rank = 0; rank < getSize(); ++rank) {
    const auto begin = kind == Kind::all_to_all ? part * static_cast<std::size_t>(getRank()) : 0;
    copy_bytes(from(rank).subspan(begin, part), to + part * static_cast<std::size_t>(rank));
  }
}

void TcpBackend::reduce_small(const FlatCall& call, Payloads& payloads) {
  const auto output = bytes_to(call.output);
  const auto begin = call.fingerprint.kind == Kind::reduce_scatter
                         ? output.size() * static_cast<std::size_t>(getRank())
                         : 0;
  std::vector<const std::byte*> inputs;
  for (int rank = 0; rank < getSize(); ++rank)
    inputs.push_back((rank == getRank() ? bytes_of(call.input).data()
                                        : payloads[static_cast<std::size_t>(rank)].data())
                     + begin);
  auto* const to = output.data();
  reduce_ranks(call.input.scalar_type(), static_cast<ReduceOp>(call.fingerprint.op), inputs,
               {&to, 1}, static_cast<std::size_t>(call.output.numel()));
}

/// For all_to_all with uneven splits: exchanges the splits of all ranks before data move.
void TcpBackend::exchange_splits(const FlatCall& call) {
  const auto ranks = static_cast<std::size_t>(getSize());
  std::vector<std::uint64_t> mine(call.in_splits.begin(), call.in_splits.end());
  mine.insert(mine.end(), call.out_splits.begin(), call.out_splits.end());
  const auto bytes = std::as_bytes(std::span(mine));
  const auto agreed = mesh_->agree(call.fingerprint, bytes, &payloads_);
  std::vector<std::uint64_t> all(ranks * mine.size()); // [rank][to each, then from each]
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const bool own = rank == static_cast<std::size_t>(getRank());
    if (!own && payloads_[rank].size() != bytes.size())
      mesh_->data_failed(agreed, rank_name(static_cast<int>(rank)) + " sent no splits");
    std::memcpy(&all[rank * mine.size()], own ? bytes.data() : payloads_[rank].data(),
                bytes.size());
  }
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to) {
      const auto sent = all[from * mine.size() + to], taken = all[to * mine.size() + ranks + from];
      if (sent == taken)
        continue;
      const auto message =
          describe_splits(static_cast<int>(from), static_cast<int>(to), sent, taken);
      mesh_->abort(message);
      throw CollectiveError(message);
    }
  move(*transfer_of(call), agreed);
}

std::unique_ptr<TcpTransfer> TcpBackend::transfer_of(const FlatCall& call) {
  const auto kind = call.fingerprint.kind;
  if (kind == Kind::broadcast)
    return std::make_unique<BroadcastTransfer>(getRank(), getSize(), call.fingerprint.root,
                                               bytes_to(call.output));
  if (!is_reduction(kind))
    return part_transfer(call);
  const bool rooted = call.fingerprint.root != Fingerprint::kNoRoot;
  return std::make_unique<ReduceTransfer>(
      getRank(), getSize(),
      ReduceTransfer::Call{.type = call.input.scalar_type(),
                           .op = static_cast<ReduceOp>(call.fingerprint.op),
                           .input = bytes_of(call.input).data(),
                           .output = bytes_to(call.output).data(),
                           .elements = static_cast<std::size_t>(call.input.numel()),
                           .scatter = kind == Kind::reduce_scatter,
                           .root = rooted ? call.fingerprint.root : ReduceTransfer::kAll},
      staging_);
}

std::unique_ptr<TcpTransfer> TcpBackend::part_transfer(const FlatCall& call) const {
  const bool gathers = call.fingerprint.kind == Kind::all_gather;
  const auto root = call.fingerprint.root;
  const auto input = bytes_of(call.input);
  const auto output = bytes_to(call.output);
  std::vector<std::span<const std::byte>> out(data_.size());
  std::vector<std::span<std::byte>> in(data_.size());
  std::size_t given = 0, taken = 0;
  for (std::size_t peer = 0; peer < data_.size(); ++peer) {
    const auto gives = gathers ? input.size() : call.in_splits[peer];
    const auto takes = gathers ? input.size() : call.out_splits[peer];
    if (!gathers || root == Fingerprint::kNoRoot || root == static_cast<int>(peer))
      out[peer] = input.subspan(given, gives);
    if (!gathers || root == Fingerprint::kNoRoot || root == getRank())
      in[peer] = output.subspan(taken, takes);
    given += gathers ? 0 : gives;
    taken += takes;
  }
  const auto own = static_cast<std::size_t>(getRank());
  if (!in[own].empty())
    copy_bytes(out[own], in[own].data());
  out[own] = {};
  in[own] = {};
  return std::make_unique<PartTransfer>(std::move(out), std::move(in));
}

void TcpBackend::move(TcpTransfer& transfer, const Fingerprint& call) {
  const auto deadline = Clock::now() + timeout_;
  mesh_->someone_left(); // reads what has arrived, so later news wakes the poll
  for (;;) {
    bool moved = false;
    for (int peer = 0; peer < getSize(); ++peer)
      if (peer != getRank()) {
        moved = push(transfer, peer) || moved;
        moved = pull(transfer, peer) || moved;
      }
    if (lost_ >= 0)
      mesh_->data_failed(call, rank_name(lost_) + " closed its connection");
    if (transfer.is_done() && is_flushed())
      return;
    if (Clock::now() >= deadline)
      mesh_->data_failed(call, "not complete by the deadline");
    if (!moved)
      wait_for_peers(transfer, deadline);
  }
}

bool TcpBackend::push(TcpTransfer& transfer, int peer) {
  auto& socket = data_[static_cast<std::size_t>(peer)];
  std::size_t total = 0;
  while (total < kTurn) {
    const auto bytes = transfer.next_out(peer);
    if (bytes.empty())
      break;
    const auto now = bytes.first(std::min(bytes.size(), kTurn - total));
    const auto sent = socket.send(now);
    if (!sent)
      lost_ = peer;
    if (sent.value_or(0) == 0)
      break;
    transfer.sent(peer, *sent);
    total += *sent;
  }
  return total > 0;
}

bool TcpBackend::pull(TcpTransfer& transfer, int peer) {
  auto& socket = data_[static_cast<std::size_t>(peer)];
  std::size_t total = 0;
  while (total < kTurn) {
    const auto bytes = transfer.next_in(peer);
    if (bytes.empty())
      break;
    const auto got = socket.receive(bytes);
    if (!got)
      lost_ = peer;
    if (got.value_or(0) == 0)
      break;
    transfer.received(peer, *got);
    total += *got;
  }
  return total > 0;
}

bool TcpBackend::is_flushed() {
  bool flushed = true;
  for (auto& socket : data_)
    flushed = (!socket || socket.flush()) && flushed;
  return flushed;
}

void TcpBackend::wait_for_peers(TcpTransfer& transfer, Deadline deadline) {
  std::vector<pollfd> items;
  for (int peer = 0; peer < getSize(); ++peer) {
    auto& socket = data_[static_cast<std::size_t>(peer)];
    if (!socket)
      continue;
    const bool sends = !transfer.next_out(peer).empty() || !socket.flush();
    const bool takes = !transfer.next_in(peer).empty();
    if (sends || takes)
      items.push_back(
          {socket.fd(), static_cast<short>((sends ? POLLOUT : 0) | (takes ? POLLIN : 0)), 0});
  }
  const auto connections = items.size();
  mesh_->add_news(items);
  poll(items.data(), items.size(), milliseconds_until(deadline));
  if (std::any_of(items.begin() + static_cast<std::ptrdiff_t>(connections), items.end(),
                  [](const pollfd& item) { return item.revents != 0; }))
    mesh_->someone_left();
}

} // namespace troupe::collectives
