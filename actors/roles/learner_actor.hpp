#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/stopwatch.hpp"
#include "actors/roles/prefetch_actor.hpp"
#include "actors/roles/span_recorder.hpp"
#include "actors/roles/state_writes.hpp"
#include "learner/replicas/replica.hpp"
#include "learner/replicas/strategy.hpp"
#include "learner/replicas/thread_choice.hpp"

namespace troupe::actors {

struct LearnerOptions {
  int replica = 0;
  bool own_data = false;      // batches come from the replica's input_fn(), not from shards
  int threads = 1;            // at most (ThreadChoice)
  bool deterministic = false; // use exactly `threads`, and products that are not measured
  int publish_period = 10;    // updates
  /// How its batches come from shards. The learner itself sets `replica`, `seed`, `learner`,
  /// `start` and `timeline`.
  PrefetchOptions batches = {};
  std::uint64_t seed = 1;
  std::function<std::unique_ptr<learner::Replica>()> make;      // called on the learner's thread
  std::function<std::shared_ptr<learner::Strategy>()> strategy; // likewise; empty: one replica
  at::Device device = at::kCPU;                                 // unless the strategy determines it
  int local_id = 0;                                             // within the strategy
  learner::LearningRateSchedule learning_rates = {};
  std::uint64_t incarnation = 0;              // number of earlier starts
  std::optional<ParameterActor> parameters;   // of the first learner; replica 0 publishes
  std::filesystem::path snapshot_folder = {}; // for replica 0's snapshots; may be empty
  std::chrono::duration<double> snapshot_period{30};
  /// How long a learner whose collective failed waits for a request for its state.
  std::chrono::duration<double> stranded_period{20};
};

/// A learner's captured state, on the CPU, and its destination.
struct LearnerWrite {
  std::filesystem::path folder;
  bool snapshot = false;   // replaces the previous one; otherwise part of a checkpoint
  bool parameters = false; // whether to write the parameters; false if they are replica 0's
  learner::TensorMap parameter_tensors, optimizer_tensors;
  std::int64_t updates = 0;
  int replica = 0;
  std::uint64_t incarnation = 0; // of the learner
};

struct LearnerState {
  static const char* name;
  LearnerOptions options;
  SpanRecorder spans; // outlives everything that records in it
  std::shared_ptr<learner::Strategy> strategy;
  std::unique_ptr<learner::ReplicaContext> context;
  std::optional<learner::ThreadChoice> thread_choice; // always set
  std::unique_ptr<learner::Replica> replica;
  std::optional<PrefetchActor> prefetch;
  std::int64_t granted = 0;
  std::int64_t updates = 0;
  std::int64_t published = -1;
  std::deque<BatchPtr> batches; // that arrived when all granted updates were made
  learner::Input input;         // the replica's own
  bool stepping = false;        // a step_atom is on its way
  std::int64_t rows = 0;        // of the replica's own data, learned from since the start
  learner::Metrics metrics;
  std::vector<caf::typed_response_promise<std::int64_t>> flushing;
  Stopwatch watch{spans.timeline()};
  std::chrono::steady_clock::time_point next_snapshot = std::chrono::steady_clock::now();
  std::optional<StateWrites> writes; // always set
  std::string snapshot_problem;      // of the last snapshot; "" if it was written
  std::string stranded;              // why its collective failed; the learner makes no more updates
};

/// Runs one replica: makes one update per batch of its prefetcher, or of the replica's own input,
/// and never more than granted. Detached. Dies with Fault::failed and the exception's text (for
/// example a NaN and its origin). After a failed collective it makes no more updates but keeps its
/// state for restarting learners, and dies with Fault::lost after stranded_period, or at once
/// without a snapshot_folder. Replica 0 writes its state to snapshot_folder/<updates> every
/// snapshot_period, or less often if writing takes more than a twentieth of the time. Snapshots and
/// checkpoints are written on another thread.
LearnerActor::behavior_type learner_actor(LearnerActor::stateful_pointer<LearnerState> self,
                                          LearnerOptions options);

} // namespace troupe::actors
