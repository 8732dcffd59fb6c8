#pragma once

#include <memory>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/backends/thread_rendezvous.hpp"

namespace troupe::collectives {

/// Ranks as threads of one process, on CPU tensors. Every call blocks until it is done; large data
/// are reduced in parallel, each rank its own slice, straight from and into the ranks' own tensors
/// (no staging copy), in the order of the ranks: results are bit-equal on all ranks and in all
/// runs. One thread per rank at a time.
class ThreadBackend : public FlatBackend {
public:
  ThreadBackend(int rank, std::shared_ptr<ThreadRendezvous> meeting);
  ~ThreadBackend() override;

  const std::string getBackendName() const override { return "threads"; }
  void poison(const std::string& message) override;

private:
  using Part = void (ThreadBackend::*)(int rank, const Fingerprint& call);

  /// Fills this rank's slot, meets, and has its part of the kind done for every rank.
  void run(const FlatCall& call) override;

  static Part part_of(Kind kind);
  void reduce_part(int rank, const Fingerprint& call);
  void broadcast_part(int rank, const Fingerprint& call);
  void gather_part(int rank, const Fingerprint& call);
  void scatter_part(int rank, const Fingerprint& call);
  void exchange_part(int rank, const Fingerprint& call);
  void barrier_part(int, const Fingerprint&) {}
  void check_splits() const;

  std::shared_ptr<ThreadRendezvous> meeting_;
};

} // namespace troupe::collectives
