#pragma once

#include <cstdint>

#include <torch/optim/adam.h>

namespace troupe::learner {

/// Adam over one flat tensor in one pass over memory (torch::optim::Adam makes a dozen, per
/// parameter). The arithmetic is Kingma and Ba's with bias correction, epsilon outside the root.
/// Weight decay is decoupled (AdamW, Loshchilov and Hutter 2019). The learning rate is the param
/// group's and may change between steps.
class FusedAdam : public torch::optim::Optimizer {
public:
  /// `flat`: the parameters, dense; its gradient is flat.grad().
  FusedAdam(at::Tensor flat, double learning_rate, double weight_decay = 0);

  at::Tensor step(LossClosure closure = nullptr) override;

  /// A step of any device without a read by the host: by `gradient`, as number `steps` (float32
  /// [1]); none where `left_out` (float32 [1]) is 1. `rate` (float32 []; undefined: the param
  /// group's) is the learning rate. The caller sees to set_steps().
  void step_on_device(const at::Tensor& gradient, const at::Tensor& steps,
                      const at::Tensor& left_out, const at::Tensor& rate);

  at::Tensor& mean() { return mean_; }     // exponential average of the gradient
  at::Tensor& square() { return square_; } // and of its square
  double weight_decay() const { return weight_decay_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

private:
  at::Tensor mean_;
  at::Tensor square_;
  double weight_decay_ = 0;
  std::int64_t steps_ = 0;
};

} // namespace troupe::learner
