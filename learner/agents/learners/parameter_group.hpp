#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/gradients/schedule.hpp"
#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// Networks' parameters in one flat tensor, which one Adam steps, and their exponential average.
/// The thread of its replica.
class ParameterGroup {
public:
  /// The layout, when it is complete. Called once.
  void declare(ParameterLayout layout) { layout_ = std::move(layout); }
  /// `initial`: the parameters, on their device; the replicas begin with the same. The learning
  /// rate is that of the context's schedule at each update, `learning_rate` its peak.
  void build(ReplicaContext& context, const at::Tensor& initial, double learning_rate,
             double max_gradient_norm, double weight_decay = 0);

  const ParameterLayout& layout() const { return layout_; }
  at::Tensor& flat() { return flat_; }
  at::Tensor& gradient() { return gradient_; }
  at::Tensor& target() { return target_; }
  /// Copies of parameters and target in bfloat16, for Mlp::bind(); undefined before keep_halves().
  /// They follow each step and each average_target().
  const at::Tensor& half() const { return half_; }
  const at::Tensor& target_half() const { return target_half_; }
  void keep_halves(); // after build()
  /// When something else changed parameters or target.
  void refresh_halves();
  FusedAdam& adam() { return *adam_; }
  WrappedOptimizer& optimizer() { return *optimizer_; }

  /// Averages the gradient over the replicas, clips it and steps. Throws std::runtime_error naming
  /// the loss, the update and the parameter if a number is not finite.
  void step(const char* loss_name, double loss, std::int64_t update);
  /// The two halves of step() for an AgentUpdate, of a replica that steps alone. The first does not
  /// read: `problem`, float32 [1], becomes 1 where the loss or the gradient is not finite, and
  /// where it is 1 nothing changes; `count`, float32 [1], is the number of the step, and `rate`,
  /// [], the learning rate (undefined: it stays). Returns the gradient's norm.
  at::Tensor step_on_device(const at::Tensor& loss, at::Tensor& problem, const at::Tensor& count,
                            const at::Tensor& rate);
  void finish_on_device(const char* loss_name, double loss, double norm, std::int64_t update);
  bool rate_changes() const { return schedule_.changes(); }
  double rate_of(std::int64_t update) const { // counted from 1
    return learning_rate_ * schedule_.multiple(update - 1, 1);
  }
  /// target = (1 - weight)^times target + (1 - (1 - weight)^times) parameters.
  void average_target(double weight, std::int64_t times);

  /// What a checkpoint holds, as views: "<name>" and "target.<name>"; "adam.exp_avg.<name>",
  /// "adam.exp_avg_sq.<name>".
  void show_parameters(TensorMap& out, bool with_target = true) const;
  void show_moments(TensorMap& out) const;

private:
  [[noreturn]] void complain(const char* loss_name, double loss, std::int64_t update,
                             const std::string& problem = "") const;

  ParameterLayout layout_;
  at::Tensor flat_;
  at::Tensor gradient_;
  at::Tensor target_;
  at::Tensor half_, target_half_;
  FusedAdam* adam_ = nullptr;
  std::unique_ptr<WrappedOptimizer> optimizer_;
  double learning_rate_ = 0; // of the schedule's peak
  double max_gradient_norm_ = 0;
  LearningRateSchedule schedule_;
};

/// A number of a run as a checkpoint's tensor: int64 [1].
at::Tensor counter(std::int64_t value);

} // namespace troupe::learner
