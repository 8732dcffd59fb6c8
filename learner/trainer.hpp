#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include <torch/nn/module.h>

#include "learner/dataset.hpp"
#include "learner/prefetcher.hpp"
#include "learner/replicator.hpp"
#include "learner/wrapped_optimizer.hpp"

namespace troupe::learner {

/// What a Trainer trains: written for one device, one instance per replica.
class TrainerModel {
public:
  virtual ~TrainerModel() = default;
  virtual torch::nn::Module& module() = 0;
  virtual std::unique_ptr<torch::optim::Optimizer> make_optimizer() = 0;
  /// A scalar: the mean over the batch's rows. The module is in training mode.
  virtual at::Tensor loss(const TensorMap& batch) = 0;
  /// Per row, {name: [rows]}: "loss", "accuracy". The module is in evaluation mode; no gradient.
  virtual TensorMap measure(const TensorMap& batch) = 0;
};

struct TrainerOptions {
  std::int64_t global_batch = 32; // rows of one step of all replicas in sync
  bool shuffle = true;
  bool keep_last = false;         // the smaller batch at an epoch's end is stepped on, not dropped
  std::uint64_t seed = 1;         // of the order of the rows
  bool global_batch_norm = false; // convert_batch_norm()
  std::int64_t report_period = 0; // steps between Callback::after_steps; 0: none
  PrefetchOptions prefetch = {};  // of each replica's batches
  WrappedOptimizerOptions optimizer = {}; // a step skipped leaves the module's buffers alone too
};

/// Where the training is, as all replicas see it.
struct TrainerReport {
  std::int64_t epoch = 0; // from 0
  std::int64_t steps = 0; // since the beginning
  Metrics metrics;        // "loss" over the epoch so far, "validation_…" at its end; where steps
                          // may be skipped, how many were ("skipped", the mean of the replicas)
};

class Trainer;

/// Looks on, on the thread that called fit(), in every process. To stop is the chief's to decide.
class Callback {
public:
  virtual ~Callback() = default;
  virtual void before_epoch(Trainer&, std::int64_t) {}
  /// Each returns false to end the training.
  virtual bool after_steps(Trainer&, const TrainerReport&) { return true; }
  virtual bool after_epoch(Trainer&, const TrainerReport&) { return true; }
};

/// Stops when a metric has not improved for `patience` epochs.
std::unique_ptr<Callback> stop_early(std::string metric, int patience, bool lower_is_better = true);
/// Saves after each epoch whose metric is the best so far; an empty metric: after every one.
std::unique_ptr<Callback> save_best(std::filesystem::path path, std::string metric = "",
                                    bool lower_is_better = true);
/// Writes a line per epoch.
std::unique_ptr<Callback> log_csv(std::filesystem::path path);

/// Fits a model to a data set on the replicas of any strategy: shards and shuffles the rows, steps,
/// evaluates without counting a row twice, calls back, saves and resumes. One thread owns it; the
/// replicator outlives it.
class Trainer {
public:
  using ModelFactory = std::function<std::unique_ptr<TrainerModel>(ReplicaContext&)>;

  /// Builds the model on every replica. Throws ReplicaError, std::invalid_argument.
  Trainer(Replicator& replicator, const ModelFactory& factory, const TrainerOptions& options = {});
  ~Trainer();

  /// Goes on until `epochs` epochs are done, counted from the beginning (of the run that was
  /// loaded). A report per epoch. Throws ReplicaError; std::invalid_argument for a data set smaller
  /// than a global batch.
  std::vector<TrainerReport> fit(const Dataset& training, std::int64_t epochs,
                                 const Dataset* validation = nullptr,
                                 const std::vector<Callback*>& callbacks = {});

  /// Means over all rows of what measure() gives, each row once, with the parameters of the first
  /// sync group.
  Metrics evaluate(const Dataset& dataset);

  /// Parameters, buffers, optimizer and counters in one safetensors file. Every process calls it;
  /// the chief writes, beside and renamed. Throws std::runtime_error naming the path.
  void save(const std::filesystem::path& path);
  /// On every replica. Throws std::runtime_error naming what is missing or of another shape.
  void load(const std::filesystem::path& path);

  /// Between two calls only.
  TrainerModel& model(int local_id = 0);
  std::int64_t epochs() const { return epochs_; }
  std::int64_t steps() const { return steps_; }

private:
  struct Seat;
  struct Sums {
    double loss = 0;
    double steps = 0; // that were made
    double skipped = 0;
  };

  EpochPlan plan_of(const ReplicaContext& context, std::int64_t rows) const;
  Metrics train_steps(const std::vector<EpochPlan>& plans,
                      const std::vector<std::unique_ptr<Prefetcher>>& inputs, std::int64_t begin,
                      std::int64_t end, Sums& sums);
  bool agreed(bool wanted);

  Replicator& replicator_;
  TrainerOptions options_;
  std::unique_ptr<Replicated<Seat>> seats_;
  std::int64_t epochs_ = 0;
  std::int64_t steps_ = 0;
};

} // namespace troupe::learner
