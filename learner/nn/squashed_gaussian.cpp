#include "learner/nn/squashed_gaussian.hpp"

#include <cmath>
#include <numbers>

#include <torch/types.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {
namespace {

constexpr double kLeastLogDeviation = -20;
constexpr double kMostLogDeviation = 2;

at::Tensor gaussian_means(const at::Tensor& raw) {
  return raw.narrow(1, 0, raw.size(1) / 2);
}

at::Tensor gaussian_logarithms(const at::Tensor& raw) {
  return raw.narrow(1, raw.size(1) / 2, raw.size(1) / 2);
}

bool takes_kernels(const at::Tensor& raw, const at::Tensor& noise) {
  return uses_kernels(raw) && raw.is_contiguous() && noise.is_contiguous();
}

} // namespace

SquashedSample squashed_sample(const at::Tensor& raw, const at::Tensor& noise) {
  if (takes_kernels(raw, noise)) {
    SquashedSample made{at::empty_like(noise), at::empty({raw.size(0)}, raw.options())};
    kernel_table().squashed_sample(raw.const_data_ptr<float>(), noise.const_data_ptr<float>(),
                                   made.action.mutable_data_ptr<float>(),
                                   made.log_probability.mutable_data_ptr<float>(), noise.size(0),
                                   noise.size(1));
    return made;
  }
  const at::Tensor log_deviation =
      gaussian_logarithms(raw).clamp(kLeastLogDeviation, kMostLogDeviation);
  const at::Tensor before = gaussian_means(raw) + log_deviation.exp() * noise;
  // log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)), which keeps small values exact
  const at::Tensor log_slope = 2 * (std::numbers::ln2 - before - at::softplus(-2 * before));
  const double log_normaliser = 0.5 * std::log(2 * std::numbers::pi);
  return {at::tanh(before),
          (-0.5 * noise * noise - log_deviation - log_normaliser - log_slope).sum(1)};
}

at::Tensor squashed_gradient(const at::Tensor& raw, const at::Tensor& noise,
                             const at::Tensor& action, const at::Tensor& action_gradient,
                             const at::Tensor& temperature, double share) {
  if (takes_kernels(raw, noise) && action.is_contiguous() && action_gradient.is_contiguous()) {
    at::Tensor gradient = at::empty_like(raw);
    kernel_table().squashed_gradient(
        raw.const_data_ptr<float>(), noise.const_data_ptr<float>(), action.const_data_ptr<float>(),
        action_gradient.const_data_ptr<float>(),
        static_cast<float>(temperature.item<double>() * share), gradient.mutable_data_ptr<float>(),
        noise.size(0), noise.size(1));
    return gradient;
  }
  const at::Tensor unclamped = gaussian_logarithms(raw);
  const at::Tensor moves =
      (unclamped >= kLeastLogDeviation).logical_and(unclamped <= kMostLogDeviation);
  // d log_probability / d before = 2 action, and -1 for each logarithm of a deviation
  const at::Tensor weight = temperature * share;
  const at::Tensor before = 2 * weight * action - action_gradient * (1 - action * action);
  const at::Tensor deviation = unclamped.clamp(kLeastLogDeviation, kMostLogDeviation).exp();
  const at::Tensor log_deviation = (before * deviation * noise - weight) * moves;
  return at::cat({before, log_deviation}, 1);
}

} // namespace troupe::learner
