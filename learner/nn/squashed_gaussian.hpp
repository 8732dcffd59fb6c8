#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

/// Gaussian actions squashed by tanh.
struct SquashedSample {
  at::Tensor action;          // [batch, action size]
  at::Tensor log_probability; // [batch]
};

/// raw: [batch, 2 * action size], means and logarithms of standard deviations; noise: standard
/// normal, [batch, action size].
SquashedSample squashed_sample(const at::Tensor& raw, const at::Tensor& noise);

/// The derivative of temperature * log_probability - value, summed over the rows and times `share`,
/// with respect to raw; temperature: []; action_gradient: that of the value * share with respect to
/// the action.
at::Tensor squashed_gradient(const at::Tensor& raw, const at::Tensor& noise,
                             const at::Tensor& action, const at::Tensor& action_gradient,
                             const at::Tensor& temperature, double share);

} // namespace troupe::learner
