#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/gradients/optimizer_recipe.hpp"
#include "learner/parameter_server/shard_plan.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

enum class Synchrony : std::uint8_t {
  asynchronous, // each gradient is applied when it arrives
  synchronous,  // the mean of each version's first gradients is applied
};

/// How the learning rate is scaled for a gradient that is `staleness` versions old.
enum class StalenessRate : std::uint8_t {
  constant,         // not scaled
  inverse,          // divided by max(1, staleness) (Zhang et al. 2016)
  inverse_plus_one, // divided by 1 + staleness
};

/// The workers are the clients that push gradients: replicas, or sync groups, whose pushes are the
/// mean over their replicas.
struct ParameterServerOptions {
  Synchrony synchrony = Synchrony::asynchronous;
  int workers = 1;
  /// Synchronous: the first `workers - backup_workers` gradients computed on the previous version
  /// make a new one. Later gradients are dropped and counted (Chen et al. 2016). 0: all gradients
  /// are needed.
  int backup_workers = 0;
  /// Asynchronous: gradients computed on parameters more than this many versions old are dropped
  /// and counted.
  std::optional<std::int64_t> max_staleness{};
  /// Asynchronous: the most gradients that a worker may be ahead of the slowest one. Beyond that,
  /// it waits before it gets parameters (stale synchronous parallel, Ho et al. 2013). The slowest
  /// worker never waits.
  std::optional<std::int64_t> max_lead{};
  StalenessRate staleness_rate = StalenessRate::constant;
  /// No worker waits for a worker that has been silent for this long. The silent worker may return.
  std::chrono::milliseconds worker_timeout{5'000};
  std::chrono::milliseconds join_timeout{120'000}; // the same for a worker that has not joined yet
};

/// Returns the options of a synchronous server that needs the gradients of all workers. The result
/// equals one worker on the whole batch.
ParameterServerOptions central_storage(int workers);
ParameterServerOptions with_backup_workers(int workers, int backup_workers);

/// Throws std::invalid_argument naming an option that is out of range, or options that conflict.
void check(const ParameterServerOptions& options);

/// The part of an optimizer and its parameters that a server holds.
struct ServedSlice {
  OptimizerRecipe recipe;
  std::vector<Segment> segments;
  at::ScalarType type = at::kFloat;
};

struct Push {
  int worker = 0;
  std::uint64_t session = 0; // as passed to join()
  std::int64_t step = 0;     // the worker's step, from 1, increasing; unchanged in a resend
  std::int64_t version = 0;  // of the parameters on which the gradient was computed
  at::Tensor gradient;       // [elements] CPU; read during the call only
  std::vector<bool> present; // [segment]; whether it has a gradient; if empty, the worker
                             // contributes nothing and is left out of the mean
  std::vector<double> learning_rates = {}; // [param group]; empty: unchanged
};

enum class Outcome : std::uint8_t {
  applied = 1, // the gradient is part of a new version
  counted = 2, // the gradient is kept; a new version needs more
  dropped = 3, // too stale, missing, or a version was made without it
  rewound = 4, // asynchronous, and newer than a restarted server's version; dropped
  unknown = 5, // this session has not joined since the server started; dropped
  refused = 6, // not finite or wrong in shape; `why` has the details
};

struct PushAnswer {
  Outcome outcome = Outcome::refused;
  std::int64_t staleness = 0; // versions made since the gradient's parameters
  double rate_scale = 1;      // factor on the learning rates of an applied gradient
  std::string why = {};
};

struct PullAnswer {
  bool ready = false;
  std::string why = {}; // what the worker waits for if not ready
};

struct ParameterServerCounters {
  std::int64_t applied = 0; // gradients that are part of a version
  std::int64_t dropped = 0;
  std::int64_t duplicates = 0; // resent gradients, which were applied once
  std::int64_t refused = 0;
  std::int64_t rewound = 0;
  std::int64_t lost_workers = 0; // workers that were silent for too long
  std::int64_t staleness_sum = 0;
  std::int64_t staleness_most = 0; // maximum over applied gradients
  double rate_scale_sum = 0;       // over applied gradients
};

/// Holds one part of an optimizer's parameters, its optimizer, and the rules for pushes and pulls.
/// It contains only data and decisions: no thread, clock or socket. At most one thread may use it
/// at a time.
///
/// A synchronous version's gradients are summed in the order of the workers, so the same gradients
/// give the same bits. Each step of a worker counts once, however often it is sent.
///
/// Workers do not wait for each other in a cycle, not even at the servers of several optimizers.
/// Without backup workers, all make their steps together. With backup workers, a worker waits only
/// for workers that have yet to make its step at this server, so the one that is furthest behind
/// proceeds; its gradient stays, and counts if the version is made before its next step. This
/// requires that all workers use the optimizers in the same order, and that their clients report
/// their steps to restarted servers (set_worker_version). It may not hold after a worker was lost
/// between two servers of a step and comes back or is replaced; waits then end by their deadlines.
class ParameterServer {
public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::int64_t kMostVersion = std::int64_t{1} << 62; // in messages and snapshots

  ParameterServer(const ParameterServerOptions& options, Time started,
                  OptimizerMaker maker = make_optimizer);
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// Copies the initial parameters, which come from worker 0 or from a worker that received some
  /// from a lost server. Throws std::invalid_argument if they do not fit the slice or are not
  /// finite.
  void begin(const ServedSlice& slice, const at::Tensor& parameters, std::int64_t version = 0);
  bool has_begun() const { return optimizer_ != nullptr; }
  /// Throws std::invalid_argument if a worker has a different optimizer or different parameters.
  void check_same(const ServedSlice& slice) const;

  /// Returns "", or why the worker is refused: it does not exist, or a newer process has taken its
  /// place. Joining twice has no effect. `step` is the worker's current step; above 0, the worker
  /// had joined an earlier server.
  std::string join(int worker, std::uint64_t session, Time now, std::int64_t step = 0);
  /// Removes a worker: others no longer wait for it, and synchronous versions need fewer gradients.
  /// If the worker pushes again, it rejoins.
  void leave(int worker, std::uint64_t session);
  /// Reports that the worker has made its steps up to `step` and may push more later. A synchronous
  /// version still needs as many gradients. No worker waits for a suspended worker that has already
  /// made the step in question.
  void suspend_participation(int worker, std::uint64_t session, std::int64_t step, Time now);
  /// Records that the worker is alive. Returns false if this session has not joined.
  bool heartbeat(int worker, std::uint64_t session, Time now);
  /// Records that the worker has made its steps at this server up to `step`, and received this
  /// version after the last one. If it already has the next synchronous version from an earlier
  /// server, that version does not need its gradient.
  void set_worker_version(int worker, std::uint64_t session, std::int64_t step,
                          std::int64_t version);
  /// Records that the current parameters were sent to the worker.
  void parameters_sent(int worker);
  /// Drops workers that have been silent for too long and returns a message about each. May make
  /// versions.
  std::vector<std::string> drop_silent_workers(Time now);
  Time next_silence_deadline() const;
  /// Returns whether a worker numbered `first` or more is connected: it has joined, and has neither
  /// left nor been silent for too long.
  bool has_workers(int first) const;

  PushAnswer push(const Push& push, Time now);
  /// Returns the answer to a step that the worker has already pushed, or nullopt if it has not been
  /// pushed here.
  std::optional<PushAnswer> answer_to(int worker, std::int64_t step) const;
  /// Returns whether `worker` may get the parameters after its step `step` (0: it begins). It waits
  /// for the version that its gradient is part of, whatever the versions of an earlier server were.
  PullAnswer pull(int worker, std::int64_t step) const;

  std::int64_t version() const { return version_; }
  const at::Tensor& parameters() const { return parameters_; } // [elements], live
  const ServedSlice& slice() const { return slice_; }
  const ParameterServerCounters& counters() const { return counters_; }
  const ParameterServerOptions& options() const { return options_; }

  /// Returns copies of the parameters, moments, version and the workers' last steps. Empty before
  /// begin().
  TensorMap snapshot() const;
  /// Replaces begin(). Throws std::invalid_argument if `snapshot` is not a snapshot.
  void restore(const TensorMap& snapshot);
  /// Loads the parameters and moments of a snapshot into a server that is in use. `load` is the
  /// number of times that the calling worker has loaded a snapshot, from 1. The worker that makes
  /// the n-th load first replaces them; for the others, it has been done. The version continues, so
  /// that the workers' next gradients count. Throws std::invalid_argument, without a change, if the
  /// snapshot is not one of the same optimizer and parameters.
  void replace(const TensorMap& snapshot, std::int64_t load);

private:
  struct Worker;

  Worker& worker_of(int worker) const;
  std::string problem_of(const Push& push) const;
  PushAnswer decide(Worker& worker, const Push& push);
  PushAnswer decide_asynchronous(const Push& push);
  PushAnswer count(Worker& worker, const Push& push);
  int required() const;
  int counted() const;
  bool cannot_count(const Worker& worker, bool by_steps) const;
  bool may_proceed(const Worker& worker) const;
  void make_version_if_complete();
  void apply(const at::Tensor& gradient, const std::vector<bool>& present,
             const std::vector<double>& rates, double factor);
  void make_slices(const ServedSlice& slice);
  std::string who_is_missing() const;

  ParameterServerOptions options_;
  OptimizerMaker make_;
  Time started_;
  std::vector<std::unique_ptr<Worker>> workers_;
  ServedSlice slice_;
  at::Tensor parameters_;
  std::vector<at::Tensor> pieces_; // [segment] views of parameters_
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<double> rates_; // [param group]; as last received
  std::int64_t version_ = 0;
  std::int64_t loads_ = 0; // number of snapshots that replace() has loaded
  ParameterServerCounters counters_;
};

} // namespace troupe::learner
