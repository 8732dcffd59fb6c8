#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "learner/replicas/distributed_input.hpp"
#include "learner/replicas/replica.hpp"
#include "learner/replicas/replica_threads.hpp"
#include "learner/replicas/thread_choice.hpp"

namespace troupe::learner {

struct ReplicatorOptions {
  std::uint64_t seed = 1;     // the run's; each replica's seed is derived from it
  int threads = 1;            // most LibTorch threads per replica (ThreadChoice)
  bool fixed_threads = false; // always use exactly `threads`
  std::size_t timeline = 0;   // spans kept per replica; 0: no timeline
};

/// The results of all replicas of this process, [local replica].
using PerReplica = std::vector<TensorMap>;

/// Holds one object for each replica of this process, e.g. networks or optimizers. Made by
/// Replicator::build().
template <class T>
class Replicated {
public:
  explicit Replicated(std::vector<std::shared_ptr<T>> all) : all_(std::move(all)) {}
  /// Returns the calling replica's object.
  T& of(const ReplicaContext& context) const {
    return *all_.at(static_cast<std::size_t>(context.local_id()));
  }
  /// Only valid between two calls of the replicator.
  T& operator[](int local_id) const { return *all_.at(static_cast<std::size_t>(local_id)); }

private:
  std::vector<std::shared_ptr<T>> all_;
};

// clang-format off
/// Runs a training program on every replica, under any strategy; the caller has the run loop:
///
///   Replicator replicator(make_mirrored_strategy(2));
///   auto gan = replicator.build<Gan>(
///       [](ReplicaContext& context) { return std::make_shared<Gan>(context); });
///   auto images = replicator.input(input_fn);
///   while (…)
///     replicator.step(*images, [&](ReplicaContext& context, const TensorMap& batch) {
///       return gan.of(context).critic_step(batch);
///     });
///
/// A single thread owns this object. If a replica fails, all replicas are stopped: the current call
/// and every later one throw ReplicaError.
// clang-format on
class Replicator {
public:
  using Body = std::function<TensorMap(ReplicaContext& context)>;
  using StepFn = std::function<TensorMap(ReplicaContext& context, const TensorMap& batch)>;

  /// Starts the replicas' threads, which get their assignments. Throws ReplicaError.
  explicit Replicator(std::unique_ptr<Strategy> strategy, const ReplicatorOptions& options = {});
  ~Replicator();

  int size() const { return threads_.size(); } // replicas in this process
  int num_replicas() const;                    // replicas in the program
  bool is_chief() const;                       // replica 0 is in this process

  /// Runs `body` on every replica at once.
  PerReplica call(const Body& body);

  template <class T>
  Replicated<T> build(const std::function<std::shared_ptr<T>(ReplicaContext&)>& make) {
    std::vector<std::shared_ptr<T>> all(static_cast<std::size_t>(size()));
    threads_.call([&](ReplicaContext& context) {
      all[static_cast<std::size_t>(context.local_id())] = make(context);
    });
    return Replicated<T>(std::move(all));
  }

  std::unique_ptr<DistributedInput> input(InputFn input_fn,
                                          const DistributedInputOptions& options = {});

  /// Makes one step on the next batches. Returns nothing if the input has ended.
  std::optional<PerReplica> step(DistributedInput& input, const StepFn& step_fn);

  /// reduce() and gather() combine the values of the replicas of this process and, if all replicas
  /// of the program step together, of the other processes. reduce() reduces them; gather()
  /// concatenates their rows in the order of the replicas (a scalar counts as one row).
  TensorMap reduce(const PerReplica& values, ReduceOp op = ReduceOp::mean);
  TensorMap gather(const PerReplica& values);

  /// Writes a Chrome trace of all replicas, on the chief. Throws std::invalid_argument without
  /// timelines.
  void write_timeline(const std::filesystem::path& path);

private:
  friend class ReplicaProgram;
  bool all_in_sync();

  ReplicaThreads threads_;
  std::vector<ThreadChoice> choices_; // [local replica]
};

/// Makes one replica. Called once per replica, on the thread that will run it.
using ReplicaFactory = std::function<std::unique_ptr<Replica>()>;

/// What a replica did during one run().
struct ReplicaReport {
  std::int64_t steps = 0;
  Metrics last;
  Metrics mean; // averaged over these steps
};

/// Runs a Replica, with its input and step function, on every replica of a replicator, which must
/// outlive this object.
class ReplicaProgram {
public:
  /// Builds the replicas. Throws ReplicaError.
  ReplicaProgram(Replicator& replicator, ReplicaFactory factory,
                 const DistributedInputOptions& input = {});

  /// Makes `steps` steps on every replica, or fewer if a finite input ends. Between steps, replicas
  /// wait for each other only in their collectives. Returns [local replica].
  std::vector<ReplicaReport> run(std::int64_t steps);

  /// Only valid between two calls of run().
  Replica& replica(int local_id) { return replicas_[local_id]; }

private:
  ReplicaReport run_steps(ReplicaContext& context, std::int64_t steps);

  Replicator& replicator_;
  Replicated<Replica> replicas_;
  DistributedInput input_;
};

} // namespace troupe::learner
