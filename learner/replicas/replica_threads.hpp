#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/replicas/strategy.hpp"

namespace troupe::learner {

/// Thrown when a replica fails. The message is "replica 1 of 2: <its message>"; the original
/// exception is nested.
class ReplicaError : public std::runtime_error {
public:
  ReplicaError(int replica_id, const std::string& what)
      : std::runtime_error(what), replica_id_(replica_id) {}
  int replica_id() const { return replica_id_; }

private:
  int replica_id_;
};

/// Returns the seed of a replica, derived from the run's seed (splitmix64). It is different for
/// every replica and the same in every run.
std::uint64_t replica_seed(std::uint64_t run_seed, int replica_id);

/// The implementation of float32 matrix products that a thread uses: ours, which does not depend on
/// a measurement, or the fastest one on this processor (measured_products()).
enum class Products : std::uint8_t { ours, fastest };

/// Prepares the calling thread for LibTorch's arithmetic: sets the number of OpenMP threads to
/// `threads`, flushes denormals and selects the products. It also makes the process keep the memory
/// of large tensors (cpu_tensor_cache.hpp). Every thread that computes must call it first.
void prepare_compute_thread(int threads, Products products = Products::ours);

/// Runs the threads of a process's replicas, each with its own context. A single thread owns this
/// object.
class ReplicaThreads {
public:
  struct Options {
    std::uint64_t seed = 1;   // the run's; each replica's seed is derived from it
    int threads = 1;          // LibTorch threads per replica
    std::size_t timeline = 0; // capacity of each replica's timeline, in spans; 0: no timeline
  };

  /// Starts the threads, which get their assignments. Throws ReplicaError or std::invalid_argument.
  ReplicaThreads(std::unique_ptr<Strategy> strategy, const Options& options);
  /// Waits for a call in progress to end, then joins the threads.
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  int size() const;
  Strategy& strategy() const;

  /// Runs `body` on the threads of all replicas at once and returns when all have finished. If a
  /// replica throws, all replicas are stopped: this call and every later one throw ReplicaError.
  void call(const std::function<void(ReplicaContext&)>& body);

  /// Returns whether a replica has failed. Long bodies without collectives should check it now and
  /// then. Any thread may call it.
  bool ending() const;

  /// Returns an empty vector if there are no timelines. Only valid between two calls.
  std::vector<const collectives::Timeline*> timelines() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace troupe::learner
