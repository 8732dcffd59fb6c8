#include "learner/nn/squashed_gaussian.hpp"

#include <cmath>
#include <numbers>

#include <torch/types.h>

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

} // namespace

SquashedSample squashed_sample(const at::Tensor& raw, const at::Tensor& noise) {
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
