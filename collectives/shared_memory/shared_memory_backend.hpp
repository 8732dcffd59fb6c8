#pragma once

#include <chrono>
#include <memory>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/shared_memory/shared_memory_rendezvous.hpp"

namespace troupe::collectives {

/// A backend for ranks that are processes of one host (or threads), on CPU tensors. For small data,
/// each rank copies its input into shared memory, all ranks meet, and each computes its own result.
/// Large data pass through in blocks, and every rank reduces its own slice directly from the other
/// ranks' stages and its own tensor. The steps are pipelined: while a rank copies one block in, it
/// reduces the previous block and copies out the one before that. Sums are in rank order, as with
/// ThreadBackend, and give the same bits. At most one thread per rank may call it at a time.
class SharedMemoryBackend : public FlatBackend {
public:
  SharedMemoryBackend(int rank, std::shared_ptr<SharedSegment> segment,
                      std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "shared_memory"; }
  void poison(const std::string& message) override { meeting_.poison(message); }

private:
  /// The bytes of a call, divided into pieces. Piece (k, b) is part b of rank k's data.
  struct Transfer;

  void run(const FlatCall& call) override;
  void run_small(const FlatCall& call);
  void run_large(const FlatCall& call);
  Transfer transfer_of(const FlatCall& call) const;
  void fill(const Transfer& transfer, std::size_t block) const;
  void reduce(const Transfer& transfer, std::size_t block) const;
  void drain(const Transfer& transfer, std::size_t block) const;

  std::shared_ptr<SharedSegment> segment_;
  SharedMemoryRendezvous meeting_;
  std::size_t small_calls_ = 0;
  std::size_t blocks_ = 0; // blocks that have passed through the stages
};

} // namespace troupe::collectives
