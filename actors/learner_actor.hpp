#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "actors/stopwatch.hpp"
#include "learner/replica.hpp"
#include "learner/strategy.hpp"

namespace troupe::actors {

struct LearnerOptions {
  int replica = 0;
  bool own_data = false; // batches come from the replica's input_fn(), not from shards
  int threads = 1;
  int publish_period = 10; // updates
  int prefetch = 2;
  int gather_threads = 1;
  std::int64_t rows = 0; // of this replica's batch, from shards
  bool feedback = false; // replica's priorities() go to the shards, batches have a "weight"
  bool weighted = false;
  double importance_exponent = 1;
  std::int64_t importance_updates = 0;
  std::uint64_t seed = 1;
  std::function<std::unique_ptr<learner::Replica>()> make;      // called on the learner's thread
  std::function<std::shared_ptr<learner::Strategy>()> strategy; // the same; empty for one replica
  at::Device device = at::kCPU;                                 // unless the strategy says
  int local_id = 0;                                             // in it
  std::vector<ReplayActor> shards;
  replay::TransitionSpec transitions;
  std::optional<ParameterActor> parameters;   // the chief's; replica 0 publishes
  std::filesystem::path snapshot_folder = {}; // of replica 0, for learners that come back; or empty
  std::chrono::duration<double> snapshot_period{30};
  /// Of a learner whose collective failed, until somebody has asked for its state and ended it.
  std::chrono::duration<double> stranded_period{20};
};

/// A learner's state at a moment, on the CPU, and where it is to be written.
struct LearnerWrite {
  std::filesystem::path folder;
  bool snapshot = false;   // takes the place of the one before; else a part of a checkpoint
  bool parameters = false; // too: for all replicas, which hold the same
  learner::TensorMap parameter_tensors, optimizer_tensors;
  std::int64_t updates = 0;
  int replica = 0;
};

struct LearnerState {
  static const char* name;
  LearnerOptions options;
  std::shared_ptr<learner::Strategy> strategy;
  std::unique_ptr<learner::ReplicaContext> context;
  std::unique_ptr<learner::Replica> replica;
  std::optional<PrefetchActor> prefetch;
  std::int64_t granted = 0;
  std::int64_t updates = 0;
  std::int64_t published = -1;
  learner::Input input;  // of its own
  bool stepping = false; // a step_atom is on its way
  std::int64_t rows = 0; // of its own data, learnt from in this life
  learner::Metrics metrics;
  std::vector<caf::typed_response_promise<std::int64_t>> flushing;
  Stopwatch watch;
  std::chrono::steady_clock::time_point next_snapshot = std::chrono::steady_clock::now();
  struct Writing {
    std::shared_ptr<const LearnerWrite> write;
    std::optional<caf::typed_response_promise<std::int64_t>> answer; // to who asked for a snapshot
  };
  std::deque<Writing> writes; // the first is on its way
  std::chrono::steady_clock::time_point write_began;
  caf::error write_failure;     // of the checkpoint's part
  std::string snapshot_problem; // with the last one; "" when it was written
  std::vector<caf::typed_response_promise<done_atom>> waiting_for_write;
  std::string stranded; // why its collective failed; it waits for the end then
};

/// One replica: makes one update per batch that its prefetcher sends, or that its replica's own
/// input brings, and never more than granted. Detached. Dies with Fault::failed and the exception's
/// text (a NaN and its origin). Where a collective failed, which names the rank, it makes no more
/// updates but keeps its state for those who begin anew, and dies with Fault::lost when nobody has
/// ended it after stranded_period; without a snapshot_folder it does so at once.
/// Replica 0 writes itself to snapshot_folder/<updates> every snapshot_period, and more rarely
/// where that takes more than a twentieth of the time; on a thread of its own, like checkpoints.
LearnerActor::behavior_type learner_actor(LearnerActor::stateful_pointer<LearnerState> self,
                                          LearnerOptions options);

} // namespace troupe::actors
