#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Gaussian actions squashed by tanh.
struct SquashedSample {
  at::Tensor action;          // [batch, action size]
  at::Tensor log_probability; // [batch]
};

/// raw: [batch, 2 * action size], the means, then the logarithms of the standard deviations. noise:
/// standard normal, [batch, action size].
SquashedSample squashed_sample(const at::Tensor& raw, const at::Tensor& noise);

/// Returns the derivative with respect to raw of temperature * log_probability - value, summed over
/// the rows and multiplied by `share`. temperature is []. action_gradient is the derivative of
/// value * share with respect to the action.
at::Tensor squashed_gradient(const at::Tensor& raw, const at::Tensor& noise,
                             const at::Tensor& action, const at::Tensor& action_gradient,
                             const at::Tensor& temperature, double share);

} // namespace troupe::learner
