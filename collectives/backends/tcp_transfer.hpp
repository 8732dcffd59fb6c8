#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <c10/core/ScalarType.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// What one rank sends to and takes from each other rank in a collective: decisions without a
/// socket. Both ends know how many bytes go over their connection, and in which order. One thread.
class TcpTransfer {
public:
  virtual ~TcpTransfer() = default;

  /// Bytes for `peer` that can go now; empty: none, for now or for good.
  virtual std::span<const std::byte> next_out(int peer) = 0;
  virtual void sent(int peer, std::size_t bytes) = 0;

  /// Where bytes of `peer` go that are taken now; empty: none are taken now.
  virtual std::span<std::byte> next_in(int peer) = 0;
  virtual void received(int peer, std::size_t bytes) = 0;

  virtual bool is_done() const = 0;
};

/// Fixed parts: out[peer] is sent to it, in[peer] filled by it.
class PartTransfer : public TcpTransfer {
public:
  PartTransfer(std::vector<std::span<const std::byte>> out, std::vector<std::span<std::byte>> in);

  std::span<const std::byte> next_out(int peer) override { return out_[index(peer)]; }
  void sent(int peer, std::size_t bytes) override;
  std::span<std::byte> next_in(int peer) override { return in_[index(peer)]; }
  void received(int peer, std::size_t bytes) override;
  bool is_done() const override { return left_ == 0; }

private:
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }

  std::vector<std::span<const std::byte>> out_;
  std::vector<std::span<std::byte>> in_;
  std::size_t left_ = 0; // bytes
};

/// From the root to all: it sends each other rank a slice, which that rank hands on as it arrives.
/// The root sends the data once, however many ranks there are.
class BroadcastTransfer : public TcpTransfer {
public:
  BroadcastTransfer(int rank, int size, int root, std::span<std::byte> data);

  std::span<const std::byte> next_out(int peer) override;
  void sent(int peer, std::size_t bytes) override;
  std::span<std::byte> next_in(int peer) override;
  void received(int peer, std::size_t bytes) override;
  bool is_done() const override { return left_ == 0; }

private:
  struct Peer {
    std::span<std::byte> slice; // the peer's
    std::size_t sent = 0, received = 0;
  };
  std::size_t to_send(int peer) const;

  int rank_, root_;
  std::vector<Peer> peers_;
  std::size_t left_ = 0;
};

/// all_reduce, reduce and reduce_scatter. Every rank reduces a slice: it takes that of each other
/// rank's input in blocks, reduces a block in the order of the ranks once all have sent it, and
/// sends the result on. So all ranks get the same bits, those of ranks as threads, with 2 (size -
/// 1) / size of the data sent and taken per rank (reduce_scatter: half). float16 and bfloat16 are
/// reduced in float32 and rounded once.
class ReduceTransfer : public TcpTransfer {
public:
  struct Call {
    c10::ScalarType type;
    ReduceOp op;
    const std::byte* input;
    std::byte* output;    // may be the input; for a scatter the rank's slice alone
    std::size_t elements; // of the input
    bool scatter = false; // results stay where they are
    int root = kAll;      // the only rank that takes results
  };
  static constexpr int kAll = -1;

  /// `staging` is memory for others' blocks, kept by the caller for later calls.
  ReduceTransfer(int rank, int size, const Call& call, std::vector<std::byte>& staging);

  std::span<const std::byte> next_out(int peer) override;
  void sent(int peer, std::size_t bytes) override;
  std::span<std::byte> next_in(int peer) override;
  void received(int peer, std::size_t bytes) override;
  bool is_done() const override { return left_ == 0 && reduced_ == mine_; }

private:
  struct Peer {
    std::size_t begin = 0, bytes = 0; // its slice of the whole
    std::size_t out = 0, in = 0;      // bytes sent and taken
  };
  bool takes_results(int rank) const;
  std::byte* result() const; // of this rank's slice
  std::byte* staged(int peer) const;
  void reduce_blocks();

  int rank_;
  Call call_;
  std::vector<Peer> peers_;
  std::byte* staging_;
  std::size_t mine_ = 0, reduced_ = 0; // bytes of this rank's slice
  std::size_t left_ = 0;               // bytes to send and to take
  std::vector<const std::byte*> inputs_;
};

} // namespace troupe::collectives
