#pragma once

#include <cstdint>

#include <torch/optim/adam.h>

namespace troupe::learner {

/// The number that Adam adds to the root of the average square, unless an agent has its own.
inline constexpr double kAdamEpsilon = 1e-8;

/// Adam over one flat tensor in one pass over memory (torch::optim::Adam makes a dozen passes per
/// parameter). The arithmetic is that of Kingma and Ba with bias correction, with epsilon outside
/// the root. Weight decay is decoupled (AdamW, Loshchilov and Hutter 2019). The learning rate is
/// that of the param group and may change between steps.
class FusedAdam : public torch::optim::Optimizer {
public:
  /// `flat` holds the parameters and is dense; its gradient is flat.grad().
  FusedAdam(at::Tensor flat, double learning_rate, double weight_decay = 0,
            double epsilon = kAdamEpsilon);

  at::Tensor step(LossClosure closure = nullptr) override;

  /// Steps on any device, without the host reading values. Uses `gradient`, and `steps` (float32
  /// [1]) as the number of the step; changes nothing if `left_out` (float32 [1]) is 1. `rate`
  /// (float32 []) is the learning rate; undefined: the param group's. The caller must keep
  /// set_steps() up to date.
  void step_on_device(const at::Tensor& gradient, const at::Tensor& steps,
                      const at::Tensor& left_out, const at::Tensor& rate);

  at::Tensor& mean() { return mean_; }     // exponential average of the gradient
  at::Tensor& square() { return square_; } // exponential average of its square
  double weight_decay() const { return weight_decay_; }
  double epsilon() const { return epsilon_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

private:
  at::Tensor mean_;
  at::Tensor square_;
  double weight_decay_ = 0;
  double epsilon_ = kAdamEpsilon;
  std::int64_t steps_ = 0;
};

} // namespace troupe::learner
