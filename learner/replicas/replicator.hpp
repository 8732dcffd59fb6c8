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
  std::uint64_t seed = 1;     // of the run; each replica's own is split from it
  int threads = 1;            // of LibTorch, for each replica, at most (ThreadChoice)
  bool fixed_threads = false; // neither more nor fewer
  std::size_t timeline = 0;   // spans kept per replica; 0: none
};

/// What every replica of this process returned, [local replica].
using PerReplica = std::vector<TensorMap>;

/// Something that every replica of this process has one of: networks, optimizers. Made by
/// Replicator::build.
template <class T>
class Replicated {
public:
  explicit Replicated(std::vector<std::shared_ptr<T>> all) : all_(std::move(all)) {}
  /// The calling replica's.
  T& of(const ReplicaContext& context) const {
    return *all_.at(static_cast<std::size_t>(context.local_id()));
  }
  /// Between two calls of the replicator only.
  T& operator[](int local_id) const { return *all_.at(static_cast<std::size_t>(local_id)); }

private:
  std::vector<std::shared_ptr<T>> all_;
};

// clang-format off
/// Runs a training program on every replica, under any strategy; the caller has the run loop:
///
///   Replicator replicator(make_mirrored_strategy(2));
///   auto gan = replicator.build<Gan>([](ReplicaContext& context) { return std::make_shared<Gan>(context); });
///   auto images = replicator.input(input_fn);
///   while (…)
///     replicator.step(*images, [&](ReplicaContext& context, const TensorMap& batch) {
///       return gan.of(context).critic_step(batch);
///     });
///
/// One thread owns it. A failure of one replica ends all: the current call and every later one throw
/// ReplicaError.
// clang-format on
class Replicator {
public:
  using Body = std::function<TensorMap(ReplicaContext& context)>;
  using StepFn = std::function<TensorMap(ReplicaContext& context, const TensorMap& batch)>;

  /// Starts the replicas' threads, which take their assignments. Throws ReplicaError.
  explicit Replicator(std::unique_ptr<Strategy> strategy, const ReplicatorOptions& options = {});
  ~Replicator();

  int size() const { return threads_.size(); } // replicas of this process
  int num_replicas() const;                    // of the program
  bool is_chief() const;                       // replica 0 is in this process

  /// `body` on every replica at once.
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

  /// One step on the next batches. Empty when the input has ended.
  std::optional<PerReplica> step(DistributedInput& input, const StepFn& step_fn);

  /// Values of the replicas of this process and, where all replicas of the program step together,
  /// of the others: reduced, or gathered by rows in the order of the replicas (a scalar is a row).
  TensorMap reduce(const PerReplica& values, ReduceOp op = ReduceOp::mean);
  TensorMap gather(const PerReplica& values);

  /// Chrome trace of all replicas, written by the chief. Throws std::invalid_argument without
  /// timelines.
  void write_timeline(const std::filesystem::path& path);

private:
  friend class ReplicaProgram;
  bool all_in_sync();

  ReplicaThreads threads_;
  std::vector<ThreadChoice> choices_; // [local replica]
};

/// Makes one replica; called once per replica, from the thread that will run it.
using ReplicaFactory = std::function<std::unique_ptr<Replica>()>;

/// What a replica did during one run().
struct ReplicaReport {
  std::int64_t steps = 0;
  Metrics last;
  Metrics mean; // over these steps
};

/// A Replica with its input and step, on every replica of a replicator, which outlives it.
class ReplicaProgram {
public:
  /// Builds the replicas. Throws ReplicaError.
  ReplicaProgram(Replicator& replicator, ReplicaFactory factory,
                 const DistributedInputOptions& input = {});

  /// `steps` steps of every replica; fewer when a finite input ends. The replicas do not wait for
  /// each other between steps but in their collectives. [local replica]
  std::vector<ReplicaReport> run(std::int64_t steps);

  /// Between two calls of run() only.
  Replica& replica(int local_id) { return replicas_[local_id]; }

private:
  ReplicaReport run_steps(ReplicaContext& context, std::int64_t steps);

  Replicator& replicator_;
  Replicated<Replica> replicas_;
  DistributedInput input_;
};

} // namespace troupe::learner
