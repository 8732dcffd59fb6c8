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
  asynchronous, // each gradient is applied as it comes
  synchronous,  // the mean of the first gradients of each version
};

/// How the learning rate of a gradient that is `staleness` versions old is scaled.
enum class StalenessRate : std::uint8_t {
  constant,         // not at all
  inverse,          // divided by max(1, staleness) (Zhang et al. 2016)
  inverse_plus_one, // divided by 1 + staleness
};

/// A worker pushes gradients: a replica, or a sync group (then a push is the mean of its replicas).
struct ParameterServerOptions {
  Synchrony synchrony = Synchrony::asynchronous;
  int workers = 1;
  /// Synchronous: the first `workers - backup_workers` gradients on the previous version make a new
  /// one; later ones are dropped and counted (Chen et al. 2016). 0: all gradients are needed.
  int backup_workers = 0;
  /// Asynchronous: a gradient on parameters that are older than this many versions is dropped and
  /// counted.
  std::optional<std::int64_t> max_staleness{};
  /// Asynchronous: a worker that is this many gradients ahead of the slowest waits for it before it
  /// gets parameters (stale synchronous parallel, Ho et al. 2013). The slowest never waits.
  std::optional<std::int64_t> max_lead{};
  StalenessRate staleness_rate = StalenessRate::constant;
  /// No worker waits for one that has been silent for this long; it may come back.
  std::chrono::milliseconds worker_timeout{5'000};
  std::chrono::milliseconds join_timeout{120'000}; // the same for one that has not joined yet
};

/// Synchronous, with the gradients of all workers. Equals one worker on the whole batch.
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
  std::uint64_t session = 0; // of join()
  std::int64_t step = 0;     // of the worker, from 1, increasing; the same when sent again
  std::int64_t version = 0;  // of the parameters that the gradient is on
  at::Tensor gradient;       // [elements] CPU; read during the call only
  std::vector<bool> present; // [segment] whether its parameter has a gradient; empty: the worker
                             // brings none at all, and its step is left out of the mean
  std::vector<double> learning_rates = {}; // [param group]; empty: as before
};

enum class Outcome : std::uint8_t {
  applied = 1, // it is part of a new version
  counted = 2, // a new version needs more gradients
  dropped = 3, // too stale, none at all, or a version was made without it
  rewound = 4, // asynchronous: on parameters newer than the server's, which has restarted; dropped
  unknown = 5, // the worker's session has not joined here (or not since a restart); dropped
  refused = 6, // not finite, or of another shape; `why` says it
};

struct PushAnswer {
  Outcome outcome = Outcome::refused;
  std::int64_t staleness = 0; // versions made since the parameters that the gradient is on
  double rate_scale = 1;      // of an applied one: what its learning rates were multiplied by
  std::string why = {};
};

struct PullAnswer {
  bool ready = false;
  std::string why = {}; // not ready: what the worker waits for
};

struct ParameterServerCounters {
  std::int64_t applied = 0; // gradients that are part of a version
  std::int64_t dropped = 0;
  std::int64_t duplicates = 0; // sent again, applied once
  std::int64_t refused = 0;
  std::int64_t rewound = 0;
  std::int64_t lost_workers = 0; // silent for too long
  std::int64_t staleness_sum = 0;
  std::int64_t staleness_most = 0; // greatest of an applied gradient
  double rate_scale_sum = 0;       // of the applied gradients
};

/// A part of an optimizer's parameters, its optimizer, and the rules of pushes and pulls: data and
/// decisions. No thread, clock or socket; one thread at a time.
///
/// The sum of a synchronous version is made in the order of the workers: the same gradients give
/// the same bits. A step of a worker counts once, however often it is sent.
class ParameterServer {
public:
  using Time = std::chrono::steady_clock::time_point;

  ParameterServer(const ParameterServerOptions& options, Time started,
                  OptimizerMaker maker = make_optimizer);
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// Copies the initial parameters, from worker 0 or from a worker that got some from a lost
  /// server. Throws std::invalid_argument if they do not fit the slice or are not finite.
  void begin(const ServedSlice& slice, const at::Tensor& parameters, std::int64_t version = 0);
  bool has_begun() const { return optimizer_ != nullptr; }
  /// Throws std::invalid_argument when a worker has another optimizer or other parameters.
  void check_same(const ServedSlice& slice) const;

  /// Returns "", or why the worker is refused: there is no such worker, or a newer process has
  /// taken its place. Joining twice has no effect. `step`: the worker's current step; above 0, it
  /// had joined an earlier server.
  std::string join(int worker, std::uint64_t session, Time now, std::int64_t step = 0);
  /// The worker has left: others no longer wait for it, and synchronous versions need fewer
  /// gradients. A push makes it join again.
  void leave(int worker, std::uint64_t session);
  /// The worker has made its steps up to `step` and may push more later. A synchronous version
  /// still needs as many gradients. No worker waits for a suspended one that has made its step
  /// already; with backup workers, none waits for any other that has: the one furthest behind
  /// passes.
  void suspend_participation(int worker, std::uint64_t session, std::int64_t step, Time now);
  /// The worker is alive. False: this session has not joined.
  bool heartbeat(int worker, std::uint64_t session, Time now);
  /// The worker has the parameters of this version since its step `step`. If it already has the
  /// next synchronous version, from an earlier server, that version does not need its gradient.
  void set_worker_version(int worker, std::uint64_t session, std::int64_t step,
                          std::int64_t version);
  /// The current parameters were sent to the worker.
  void parameters_sent(int worker);
  /// Drops workers that have been silent for too long and returns their names. May make versions.
  std::vector<std::string> drop_silent_workers(Time now);
  Time next_silence_deadline() const;

  PushAnswer push(const Push& push, Time now);
  /// The answer to a step that the worker pushed before; nullopt: it has not been pushed here.
  std::optional<PushAnswer> answer_to(int worker, std::int64_t step) const;
  /// Whether `worker`, which wants version `at_least` or a newer one, may get the parameters. A
  /// server that has restarted from an older version gives that.
  PullAnswer pull(int worker, std::int64_t at_least) const;

  std::int64_t version() const { return version_; }
  const at::Tensor& parameters() const { return parameters_; } // [elements], live
  const ServedSlice& slice() const { return slice_; }
  const ParameterServerCounters& counters() const { return counters_; }
  const ParameterServerOptions& options() const { return options_; }

  /// Parameters, moments, version and the workers' last steps, as copies; empty before begin().
  TensorMap snapshot() const;
  /// Instead of begin(). Throws std::invalid_argument if it is not a snapshot.
  void restore(const TensorMap& snapshot);

private:
  struct Worker;

  Worker& worker_of(int worker) const;
  std::string problem_of(const Push& push) const;
  PushAnswer decide(Worker& worker, const Push& push);
  PushAnswer decide_asynchronous(const Push& push);
  PushAnswer count(Worker& worker, const Push& push);
  int required() const;
  int counted() const;
  bool cannot_count(const Worker& worker) const;
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
  std::vector<double> rates_; // [param group] last given
  std::int64_t version_ = 0;
  ParameterServerCounters counters_;
};

} // namespace troupe::learner
