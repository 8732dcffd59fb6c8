#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

struct HeadReport {
  at::Tensor penalty;    // [], weight * mean(relu(|raw| - 1.5)^2)
  at::Tensor saturation; // [], fraction of |action| > 0.95
};

/// Computes the derivative of the policy loss -mean(Q) + penalty with respect to raw [batch,
/// action_size], where action = tanh(raw). action_gradient is d(-mean Q)/d action; before use, the
/// Q part of each sample is clipped to `clip_norm` (0: off).
HeadReport policy_head_backward(const at::Tensor& raw, const at::Tensor& action,
                                at::Tensor& action_gradient, double clip_norm,
                                double penalty_weight, at::Tensor& gradient);

} // namespace troupe::learner
