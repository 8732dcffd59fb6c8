#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/gradients/bucket_reduction.hpp"
#include "learner/gradients/bucket_tuner.hpp"
#include "learner/gradients/schedule.hpp"
#include "learner/tensor_map.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::collectives {
class Timeline;
}

namespace troupe::learner {

class GradientBuckets;
class ShardedState;
class UpdateRule;

struct WrappedOptimizerOptions {
  std::int64_t bucket_bytes = 1 << 20; // size of one flat all_reduce; 0: tuned in the first steps
  double max_gradient_norm = 0;        // global L2 norm of the reduced gradients; 0: no clipping
  int accumulate = 1; // micro-batches per update. step() is called for each of them. The last call
                      // sends the mean of the gradients and updates.
  GradientOperation operation = GradientOperation::mean; // over the replicas
  CompressionOptions compression = {};
  bool overlap = true;                // reduce buckets during the backward pass
  bool deterministic = false;         // results do not depend on time or gradient order
  bool join_mean_over_all = false;    // replicas that have joined count in the mean
  bool shard_optimizer_state = false; // each replica keeps the state of its share of the parameters
  /// Number of consecutive steps that may be skipped because a gradient on any replica contains NaN
  /// or infinity. All averaged replicas skip the same steps. One more such step throws. 0: the
  /// first one throws.
  int skip_not_finite = 0;
  std::vector<std::string> names = {}; // of the parameters, for messages; see parameter_names()
  std::vector<LearningRateSchedule> schedules =
      {};                   // none, one for all parameter groups, or one for each
  int replicas_in_sync = 0; // for schedules; set by wrap_optimizer(). 0: the communicator's size
  std::function<double()> clock = {};        // seconds, for bucket_bytes 0; empty: steady clock
  collectives::Timeline* timeline = nullptr; // must outlive the optimizer; null: not recorded
};

/// An optimizer that uses the gradients of all replicas. All replicas must construct and step it in
/// the same order, each on its own thread. With one replica (a null communicator, or one of size
/// 1), nothing is averaged or copied. Use ReplicaContext::wrap_optimizer to make one.
///
/// Between zero_grad() and step(), buckets of gradients are sent while backward computes the next
/// ones. In the meantime grad() of their parameters is undefined. Other collectives in between,
/// such as a global batch norm, are allowed if all replicas run the same layers in the same order;
/// otherwise switch `overlap` off.
///
/// If only some replicas have a gradient for a parameter, it counts as zero on the others. If no
/// replica has one, the parameter remains without a gradient. After step(), the gradients are the
/// reduced and clipped ones (views of flat buffers that the next step() reuses).
class WrappedOptimizer {
public:
  /// Broadcasts the parameters of replica 0. With a rule, gradients are not averaged: the rule
  /// makes the parameters equal and receives this replica's own clipped gradients. Throws
  /// CollectiveError. Throws std::invalid_argument if an option is out of range, if the optimizer
  /// has no parameters, and with a rule for options of the average: another operation, compression,
  /// shard_optimizer_state, join_mean_over_all.
  WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                   collectives::Communicator* communicator,
                   const WrappedOptimizerOptions& options = {},
                   std::shared_ptr<UpdateRule> rule = nullptr);
  ~WrappedOptimizer();

  /// Discards the gradients. Does nothing between the micro-batches of an update.
  void zero_grad();

  /// Reduces and clips the gradients, updates the parameters and returns true. Returns false for a
  /// micro-batch that is not the last, and for a skipped step (skip_not_finite). Throws
  /// CollectiveError. If a gradient is not finite, throws std::runtime_error naming the update, the
  /// parameter and the replicas; all averaged replicas throw, and their parameters remain
  /// unchanged.
  bool step();

  /// Call this on every replica after its last step(). While other replicas still have batches, it
  /// answers their steps with zero gradients and makes the same updates; it returns when all
  /// replicas have joined. `state` (for example the statistics of batch norm) is replaced by that
  /// of the replica that stepped last, whose number is returned. The mean is over the replicas that
  /// still step, unless join_mean_over_all is set. The steps of the other replicas must not call
  /// any collectives except this optimizer's.
  int join(const std::vector<at::Tensor>& state = {});

  /// Global L2 norm of the reduced gradients of the last step(), before clipping.
  double gradient_norm() const { return gradient_norm_; }
  void set_max_gradient_norm(double norm);

  std::int64_t steps() const { return steps_; } // number of updates
  /// Number of updates that the parameters received in the last step(). It is 1 if replicas wait
  /// for each other; otherwise it includes the updates of the other replicas. 0: the step was
  /// skipped. Averages of parameters must use this number.
  std::int64_t updates_applied() const { return updates_applied_; }
  std::int64_t skipped() const { return skipped_; } // steps without an update, see skip_not_finite
  std::int64_t bucket_bytes() const;                // currently used
  /// The number of buckets that the last step sent during the backward pass, and the number of all
  /// buckets.
  std::int64_t buckets_sent_early() const;
  std::int64_t buckets() const;

  /// What a resumed run needs in addition to the parameters: the optimizer's state (of all replicas
  /// if it is sharded), the number of updates, and the compression residuals. All replicas must
  /// call it, and all get the same result. If the program serves its parameters itself, the result
  /// includes those and their moments; it is then complete only in replica 0's process. Throws
  /// std::runtime_error if the optimizer cannot be saved.
  TensorMap state();
  /// Loads the state() of any number of replicas. Throws std::runtime_error naming what is missing.
  /// With parameter servers, all replicas must call it, equally often. Servers with checkpoints of
  /// their own must have been restored; otherwise it throws std::runtime_error.
  void load(const TensorMap& state);

  /// True if step() does not involve other replicas: it only clips and steps the optimizer.
  bool steps_alone() const { return !rule_ && !communicator_; }

  /// The parts of step() for CapturedUpdate, which requires steps_alone() and accumulate 1. This
  /// one returns the rates of the next update, [parameter group].
  std::vector<double> next_learning_rates() const;
  /// Clips the gradients without synchronising with the host. Returns their norm before clipping,
  /// float64 [].
  at::Tensor clip_on_device() const;
  /// Completes the step after the parameters were updated, or were left unchanged because the norm
  /// is not finite. Returns and throws as step() does.
  bool finish_step(double gradient_norm);

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

private:
  bool update(double scale, bool stepping);
  std::string measure_and_clip(const std::vector<at::Tensor>& gradients);
  std::vector<at::Tensor> gradients() const;
  void leave_out(const std::string& problem);
  void apply_schedules();
  void tune();

  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<UpdateRule> rule_;        // null: synchronous
  collectives::Communicator* communicator_; // null: a single replica
  WrappedOptimizerOptions options_;
  std::vector<at::Tensor> parameters_; // in the optimizer's order
  std::vector<double> base_rates_;     // [parameter group]
  std::unique_ptr<GradientBuckets> buckets_;
  std::unique_ptr<ShardedState> sharded_;
  std::optional<BucketTuner> tuner_;
  double last_time_ = -1;
  int micro_batches_ = 0; // of the current update
  std::int64_t steps_ = 0;
  std::int64_t updates_applied_ = 0;
  std::int64_t skipped_ = 0;
  int skipped_in_a_row_ = 0;
  std::vector<int> stepping_; // replicas that took the last step
  double gradient_norm_ = 0;
};

} // namespace troupe::learner
