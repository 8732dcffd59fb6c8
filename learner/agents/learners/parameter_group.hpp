#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/gradients/schedule.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/kernels/rounded_product.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// How a ParameterGroup learns.
struct Training {
  double learning_rate = 0; // the peak; the context's schedule determines the rate of each update
  double gradient_norm = 0; // limit of the norm; 0: no clipping
  double weight_decay = 0;
  Rounding rounding = Rounding::none; // of the copies for Mlp::bind(); none: no copies
  double adam_epsilon = kAdamEpsilon;
};

/// Parameters of networks in one flat tensor, stepped by one Adam, and their exponential average,
/// the target. Must be used on its replica's thread.
class ParameterGroup {
public:
  /// Sets the complete layout. Must be called once.
  void declare(ParameterLayout layout) { layout_ = std::move(layout); }
  /// `initial`: the initial parameters on their device, equal on all replicas.
  void build(ReplicaContext& context, const at::Tensor& initial, const Training& training);

  const ParameterLayout& layout() const { return layout_; }
  at::Tensor& flat() { return flat_; }
  at::Tensor& gradient() { return gradient_; }
  at::Tensor& target() { return target_; }
  /// Copies of parameters and target in bfloat16, for Mlp::bind(). step() and average_target()
  /// update them.
  const Halves& half() const { return half_; }
  const Halves& target_half() const { return target_half_; }
  /// Updates the copies after other code has changed parameters or target.
  void refresh_halves();
  FusedAdam& adam() { return *adam_; }
  WrappedOptimizer& optimizer() { return *optimizer_; }

  /// Averages the gradient over the replicas, clips it and makes a step. Throws std::runtime_error
  /// naming the loss, the update and the parameter if a number is not finite.
  void step(const char* loss_name, double loss, std::int64_t update);
  /// The two halves of step() for an AgentUpdate of a replica that steps alone. In
  /// step_on_device() the host reads no tensor. It sets `problem`, float32 [1], to 1 if the loss or
  /// the gradient is not finite, and changes nothing if `problem` is 1. `count`, float32 [1], is
  /// the number of the step; `rate`, [], is the learning rate (undefined: unchanged). Returns the
  /// norm of the gradient.
  at::Tensor step_on_device(const at::Tensor& loss, at::Tensor& problem, const at::Tensor& count,
                            const at::Tensor& rate);
  void finish_on_device(const char* loss_name, double loss, double norm, std::int64_t update);
  bool rate_changes() const { return schedule_.changes(); }
  double rate_of(std::int64_t update) const { // counted from 1
    return learning_rate_ * schedule_.multiple(update - 1, 1);
  }
  /// target = (1 - weight)^times target + (1 - (1 - weight)^times) parameters.
  void average_target(double weight, std::int64_t times);

  /// Adds views of the tensors in a checkpoint: "<name>" and "target.<name>", or
  /// "adam.exp_avg.<name>" and "adam.exp_avg_sq.<name>".
  void show_parameters(TensorMap& out, bool with_target = true) const;
  void show_moments(TensorMap& out) const;

private:
  [[noreturn]] void complain(const char* loss_name, double loss, std::int64_t update,
                             const std::string& problem = "") const;

  ParameterLayout layout_;
  at::Tensor flat_;
  at::Tensor gradient_;
  at::Tensor target_;
  Halves half_, target_half_;
  FusedAdam* adam_ = nullptr;
  std::unique_ptr<WrappedOptimizer> optimizer_;
  double learning_rate_ = 0; // peak of the schedule
  double max_gradient_norm_ = 0;
  LearningRateSchedule schedule_;
};

/// Converts a counter to a tensor for checkpoints, int64 [1].
at::Tensor counter(std::int64_t value);

} // namespace troupe::learner
