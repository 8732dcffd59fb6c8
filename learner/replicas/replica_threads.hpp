#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/replicas/strategy.hpp"

namespace troupe::learner {

/// A replica failed. "replica 1 of 2: <its message>"; the original exception is nested.
class ReplicaError : public std::runtime_error {
public:
  ReplicaError(int replica_id, const std::string& what)
      : std::runtime_error(what), replica_id_(replica_id) {}
  int replica_id() const { return replica_id_; }

private:
  int replica_id_;
};

/// The seed of a replica, split from the run's (splitmix64): different for every replica, the same
/// for every run.
std::uint64_t replica_seed(std::uint64_t run_seed, int replica_id);

/// Makes the calling thread fit for LibTorch's arithmetic: `threads` of OpenMP, denormals flushed;
/// and the process: large tensors' memory is kept (cpu_tensor_cache.hpp). First thing in every
/// thread that computes.
void prepare_compute_thread(int threads);

/// The threads of a process's replicas, each with its context. One thread owns it.
class ReplicaThreads {
public:
  struct Options {
    std::uint64_t seed = 1;   // of the run; each replica's is split from it
    int threads = 1;          // of LibTorch, for each replica
    std::size_t timeline = 0; // spans that each replica's timeline holds; 0: none is kept
  };

  /// Starts the threads and takes the assignments. Throws ReplicaError, std::invalid_argument.
  ReplicaThreads(std::unique_ptr<Strategy> strategy, const Options& options);
  /// Lets a call that is under way end, then joins.
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  int size() const;
  Strategy& strategy() const;

  /// `body` on the thread of every replica at once; returns when all have. The first replica that
  /// throws ends them all: ReplicaError here and at every later call.
  void call(const std::function<void(ReplicaContext&)>& body);

  /// Whether a replica has failed: long bodies without collectives ask now and then. Any thread.
  bool ending() const;

  /// Empty without timelines. Between two calls only.
  std::vector<const collectives::Timeline*> timelines() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace troupe::learner
