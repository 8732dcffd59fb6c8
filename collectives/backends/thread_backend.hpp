#pragma once

#include <memory>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/backends/thread_rendezvous.hpp"

namespace troupe::collectives {

/// A backend for ranks that are threads of one process, on CPU tensors. Every call blocks until it
/// is complete. Large data are reduced in parallel: each rank reduces its own slice, directly from
/// and into the ranks' tensors (no staging copy), in rank order. Results are therefore bit-equal on
/// all ranks and in all runs. At most one thread per rank may call it at a time.
class ThreadBackend : public FlatBackend {
public:
  ThreadBackend(int rank, std::shared_ptr<ThreadRendezvous> meeting);
  ~ThreadBackend() override;

  const std::string getBackendName() const override { return "threads"; }
  void poison(const std::string& message) override;

private:
  using Part = void (ThreadBackend::*)(int rank, const Fingerprint& call);

  /// Fills this rank's slot, meets the other ranks and then does this rank's part of the call. For
  /// small data, the last rank to arrive does the parts of all ranks instead.
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
