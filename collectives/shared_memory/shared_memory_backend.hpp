#pragma once

#include <chrono>
#include <memory>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/shared_memory/shared_memory_rendezvous.hpp"

namespace troupe::collectives {

/// Ranks as processes of one host (or threads), on CPU tensors. Small data are put into the shared
/// memory, all meet, and each works out its own result. Large data go through in blocks, and every
/// rank reduces its own slice straight from the others' stages and its own tensor: while it copies
/// one block in, it reduces the one before and takes out the one before that. Sums go in the order
/// of the ranks, as with ThreadBackend: the same bits. One thread per rank at a time.
class SharedMemoryBackend : public FlatBackend {
public:
  SharedMemoryBackend(int rank, std::shared_ptr<SharedSegment> segment,
                      std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "shared_memory"; }
  void poison(const std::string& message) override { meeting_.poison(message); }

private:
  /// The bytes of a call, in pieces: piece (k, b) is the b-th part of what belongs to rank k.
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
  std::size_t blocks_ = 0; // passed through the stages
};

} // namespace troupe::collectives
