#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <c10/core/ScalarType.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// Decides what one rank sends to and receives from each other rank in a collective. It contains no
/// socket. Both ends know how many bytes travel over their connection, and in which order. One
/// thread only.
class TcpTransfer {
public:
  virtual ~TcpTransfer() = default;

  /// Returns the bytes that can be sent to `peer` now. Empty: none, either for now or because all
  /// are sent.
  virtual std::span<const std::byte> next_out(int peer) = 0;
  virtual void sent(int peer, std::size_t bytes) = 0;

  /// Returns the memory for the next bytes from `peer`. Empty: none can be received now.
  virtual std::span<std::byte> next_in(int peer) = 0;
  virtual void received(int peer, std::size_t bytes) = 0;

  virtual bool is_done() const = 0;
};

/// Transfers fixed parts: out[peer] is sent to the peer, in[peer] is filled by it.
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

/// Broadcasts from the root, which sends each other rank a slice; that rank forwards the slice as
/// it arrives. The root sends the data only once, however many ranks there are.
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
    std::span<std::byte> slice; // the peer's slice of the data
    std::size_t sent = 0, received = 0;
  };
  std::size_t to_send(int peer) const;

  int rank_, root_;
  std::vector<Peer> peers_;
  std::size_t left_ = 0;
};

/// Implements all_reduce, reduce and reduce_scatter. Every rank reduces one slice: it receives that
/// slice of each other rank's input in blocks, reduces a block in rank order once all ranks have
/// sent it, and sends the result on. All ranks therefore get the same bits as with ThreadBackend.
/// Each rank sends and receives 2 (size - 1) / size of the data (half of that for reduce_scatter).
/// float16 and bfloat16 are reduced in float32 and rounded once.
class ReduceTransfer : public TcpTransfer {
public:
  struct Call {
    c10::ScalarType type;
    ReduceOp op;
    const std::byte* input;
    std::byte* output;    // may be the input; for a scatter, only this rank's slice
    std::size_t elements; // of the input
    bool scatter = false; // each rank keeps the result of its own slice
    int root = kAll;      // the only rank that receives results, or kAll
  };
  static constexpr int kAll = -1;

  /// `staging` is memory for the other ranks' blocks; the caller keeps it for later calls.
  ReduceTransfer(int rank, int size, const Call& call, std::vector<std::byte>& staging);

  std::span<const std::byte> next_out(int peer) override;
  void sent(int peer, std::size_t bytes) override;
  std::span<std::byte> next_in(int peer) override;
  void received(int peer, std::size_t bytes) override;
  bool is_done() const override { return left_ == 0 && reduced_ == mine_; }

private:
  struct Peer {
    std::size_t begin = 0, bytes = 0; // the peer's slice of the data
    std::size_t out = 0, in = 0;      // bytes sent and received
  };
  bool takes_results(int rank) const;
  std::byte* result() const; // result of this rank's slice
  std::byte* staged(int peer) const;
  void reduce_blocks();

  int rank_;
  Call call_;
  std::vector<Peer> peers_;
  std::byte* staging_;
  std::size_t mine_ = 0, reduced_ = 0; // bytes of this rank's slice
  std::size_t left_ = 0;               // bytes still to send and receive
  std::vector<const std::byte*> inputs_;
};

} // namespace troupe::collectives
