#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "learner/replica.hpp"

namespace troupe::learner {

/// Makes one replica; called once per replica, from the thread that will run it.
using ReplicaFactory = std::function<std::unique_ptr<Replica>()>;

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

/// Makes the calling thread fit for LibTorch's arithmetic: `threads` of OpenMP, denormals flushed.
/// First thing in every thread that computes.
void prepare_compute_thread(int threads);

struct ReplicaRunnerOptions {
  std::uint64_t seed = 1; // of the run; the replica's own is split from it
  int threads = 1;        // of LibTorch, for this replica
  at::Device device = at::kCPU;
  /// The input ends some day: before each step the replicas agree (one small all_reduce) that all
  /// of them have a batch, and stop together. Without it an input that ends is an error.
  bool finite_input = false;
};

/// One replica on the thread that constructs it: builds it, feeds it, steps it. Every rank of the
/// communicator runs one, wherever it lives. Not thread-safe.
class ReplicaRunner {
public:
  /// `communicator` may be null for a single replica and must outlive this. Calls prepare_compute_
  /// thread() and Replica::build().
  ReplicaRunner(std::unique_ptr<Replica> replica, collectives::Communicator* communicator,
                const ReplicaRunnerOptions& options = {});

  /// Next batch of the replica's own input_fn (made at the first call), then step_fn. Empty when
  /// the input has ended (finite_input only).
  std::optional<Metrics> step();

  /// step_fn on a batch that the caller brings.
  Metrics step(const TensorMap& batch);

  std::int64_t steps() const { return steps_; }
  Replica& replica() { return *replica_; }
  ReplicaContext& context() { return context_; }

private:
  bool all_have(bool mine);

  ReplicaContext context_;
  bool finite_input_;
  std::unique_ptr<Replica> replica_;
  Input input_;
  std::int64_t steps_ = 0;
};

struct ReplicatorOptions {
  int replicas = 1;
  ReplicaRunnerOptions runner;
  collectives::CommunicatorOptions communicator;
};

/// What a replica did during one run().
struct ReplicaReport {
  std::int64_t steps = 0;
  Metrics last;
  Metrics mean; // over these steps
};

/// N replicas as threads of this process, each with its own input pipeline, in lockstep through a
/// communicator of threads. One thread owns it.
class Replicator {
public:
  /// Starts the threads and builds the replicas. Throws ReplicaError, std::invalid_argument.
  Replicator(ReplicaFactory factory, const ReplicatorOptions& options);
  /// Lets a step that is under way end, then joins.
  ~Replicator();
  Replicator(const Replicator&) = delete;
  Replicator& operator=(const Replicator&) = delete;

  /// `steps` steps of every replica; fewer when a finite input ends. The first replica that throws
  /// ends them all: ReplicaError here and at every later call.
  std::vector<ReplicaReport> run(std::int64_t steps);

  int size() const;
  /// Between two calls of run() only.
  Replica& replica(int replica_id);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace troupe::learner
