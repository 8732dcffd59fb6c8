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
  std::int64_t bucket_bytes = 1 << 20; // of one flat all_reduce; 0: tuned in the first steps
  double max_gradient_norm = 0;        // global L2 norm of the reduced gradients; 0: no clipping
  int accumulate = 1; // micro-batches of an update: the gradients are their mean, step() is called
                      // for each, and only the last one sends and updates
  GradientOperation operation = GradientOperation::mean; // over the replicas
  CompressionOptions compression = {};
  bool overlap = true;                // buckets are reduced while backward runs
  bool deterministic = false;         // nothing depends on time or on the order of gradients
  bool join_mean_over_all = false;    // once replicas have joined (see join()) the mean counts them
  bool shard_optimizer_state = false; // each replica keeps the state of its part of the parameters
  /// So many steps in a row whose gradient has NaN or infinity anywhere are left out, on all
  /// replicas that are averaged; the next one throws. 0: the first does.
  int skip_not_finite = 0;
  std::vector<std::string> names = {}; // of the parameters, for messages: parameter_names()
  std::vector<LearningRateSchedule> schedules =
      {};                                    // none, one for all parameter groups, or one each
  std::function<double()> clock = {};        // seconds, for bucket_bytes 0; empty: the steady clock
  collectives::Timeline* timeline = nullptr; // outlives the optimizer; null: nothing is recorded
};

/// An optimizer whose gradients are those of all replicas. All replicas construct and step it in
/// the same order. With one replica (a null communicator, or one of size 1) nothing is averaged and
/// nothing copied. One thread, the replica's own. Made by ReplicaContext::wrap_optimizer.
///
/// Between zero_grad() and step() buckets of gradients are sent while backward computes the next
/// ones; grad() of their parameters is undefined meanwhile. Other collectives in between (a global
/// batch norm) are fine where all replicas run the same layers in the same order; else switch
/// `overlap` off.
///
/// A parameter that has a gradient on some replicas only counts as zero on the others; one that has
/// none anywhere keeps none. After step() the gradients are the reduced, clipped ones (views of
/// flat buffers that the next step() reuses).
class WrappedOptimizer {
public:
  /// Broadcasts the parameters of replica 0. Throws CollectiveError, and std::invalid_argument for
  /// options out of range or an optimizer without parameters.
  WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                   collectives::Communicator* communicator,
                   const WrappedOptimizerOptions& options = {});
  /// With a rule, which makes the parameters equal and gets this replica's own clipped gradients
  /// instead of averages. Null: no rule.
  WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                   collectives::Communicator* communicator, const WrappedOptimizerOptions& options,
                   std::unique_ptr<UpdateRule> rule);
  ~WrappedOptimizer();

  /// Forgets the gradients; between the micro-batches of an update it does nothing.
  void zero_grad();

  /// Reduce, clip, update; true. False for a micro-batch that is not the last, and for a step that
  /// was left out (skip_not_finite). Throws CollectiveError, and std::runtime_error naming the
  /// update, the parameter and the replicas when a gradient is not finite; on all replicas that are
  /// averaged, whose parameters are then as they were.
  bool step();

  /// This replica has no more batches, the others may: answers their steps with zero gradients and
  /// makes the same updates, until all replicas are here. Every replica calls it after its last
  /// step(). `state` (batch norm's statistics) becomes that of the replica that stepped last; its
  /// number is returned. The mean is over the replicas that still step, unless join_mean_over_all.
  /// Steps of the others must call no collectives but this optimizer's.
  int join(const std::vector<at::Tensor>& state = {});

  /// Global L2 norm of the reduced gradients of the last step(), before clipping.
  double gradient_norm() const { return gradient_norm_; }
  void set_max_gradient_norm(double norm);

  std::int64_t steps() const { return steps_; } // updates
  /// How many updates the parameters took in the last step(): 1, or as many as the replicas made
  /// that do not wait for this one; 0: it was left out. Averages of parameters go by it.
  std::int64_t updates_applied() const { return updates_applied_; }
  std::int64_t skipped() const { return skipped_; } // left out for gradients that are not finite
  std::int64_t bucket_bytes() const;                // in use
  /// Buckets of the last step that were sent while backward ran, and all of them.
  std::int64_t buckets_sent_early() const;
  std::int64_t buckets() const;

  /// What a resumed run needs besides the parameters: the optimizer's state (of all replicas, when
  /// it is sharded), the number of updates, what compression has left over. The same on all
  /// replicas; all call it. Throws std::runtime_error for an optimizer that cannot be saved.
  TensorMap state();
  /// Takes the state() of any number of replicas. Throws std::runtime_error naming what is missing.
  void load(const TensorMap& state);

  /// No other replica's gradients or parameters count: its step() is the optimizer's, with
  /// clipping.
  bool steps_alone() const { return !rule_ && !communicator_; }

  /// The parts of step() for CapturedUpdate, where it steps_alone() with accumulate 1.
  /// Of the next update, [parameter group].
  std::vector<double> next_learning_rates() const;
  /// Clips the gradients without a read by the host; their norm before, float64 [].
  at::Tensor clip_on_device() const;
  /// What is left once the parameters are updated, or are not because the norm is not finite:
  /// returns and throws as step() does.
  bool finish_step(double gradient_norm);

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

private:
  void check_options() const;
  bool update(double scale, bool stepping);
  std::string measure_and_clip(const std::vector<at::Tensor>& gradients);
  std::vector<at::Tensor> gradients() const;
  void leave_out(const std::string& problem);
  void apply_schedules();
  void tune();

  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<UpdateRule> rule_;        // null: synchronous
  collectives::Communicator* communicator_; // null for a single replica
  WrappedOptimizerOptions options_;
  std::vector<at::Tensor> parameters_; // in the optimizer's order
  std::vector<double> base_rates_;     // [parameter group]
  std::unique_ptr<GradientBuckets> buckets_;
  std::unique_ptr<ShardedState> sharded_;
  std::optional<BucketTuner> tuner_;
  double last_time_ = -1;
  int micro_batches_ = 0; // of the update under way
  std::int64_t steps_ = 0;
  std::int64_t updates_applied_ = 0;
  std::int64_t skipped_ = 0;
  int skipped_in_a_row_ = 0;
  std::vector<int> stepping_; // replicas that stepped last
  double gradient_norm_ = 0;
};

} // namespace troupe::learner
