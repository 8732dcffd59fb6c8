#include "learner/nn/activation_probe.hpp"

#include <stdexcept>

#include <torch/types.h>

namespace troupe::learner {
namespace {

constexpr double kDormant = 0.025; // as a fraction of the mean over a layer's units
constexpr double kRankShare = 0.99;
constexpr double kNearBound = 0.99; // of the range of tanh

thread_local ActivationProbe* active_probe = nullptr;

} // namespace

ActivationProbe::ActivationProbe() {
  if (active_probe != nullptr)
    throw std::logic_error("this thread has an activation probe already");
  active_probe = this;
}

ActivationProbe::~ActivationProbe() {
  active_probe = nullptr;
}

ActivationProbe* ActivationProbe::active() {
  return active_probe;
}

void ActivationProbe::see_units(const at::Tensor& weight, const at::Tensor& units) {
  const at::NoGradGuard no_gradient;
  const at::Tensor rows = units.dim() == 4 ? units.abs().flatten(2).mean(2) : units;
  const at::Tensor sizes = rows.abs().mean(0);
  Layer& layer = layers_[weight.const_data_ptr()];
  layer.units = sizes.numel();
  layer.dormant = sizes.le(sizes.mean() * kDormant).sum().item<std::int64_t>();
}

void ActivationProbe::see_features(const at::Tensor& weight, const at::Tensor& features,
                                   const at::Tensor& outputs) {
  Layer& layer = layers_[weight.const_data_ptr()];
  layer.features = features.detach().clone();
  if (outputs.defined())
    layer.outputs = outputs.detach().clone();
}

const ActivationProbe::Layer* ActivationProbe::layer(const at::Tensor& weight) const {
  const auto found = layers_.find(weight.const_data_ptr());
  return found == layers_.end() ? nullptr : &found->second;
}

std::int64_t effective_rank(const at::Tensor& features) {
  const at::NoGradGuard no_gradient;
  const at::Tensor values = at::linalg_svdvals(features.to(at::kCPU, at::kDouble));
  const double sum = values.sum().item<double>();
  if (sum == 0)
    return 0;
  return values.cumsum(0).lt(kRankShare * sum).sum().item<std::int64_t>() + 1;
}

double tanh_saturation(const at::Tensor& numbers) {
  const at::NoGradGuard no_gradient;
  return numbers.tanh().abs().gt(kNearBound).to(at::kDouble).mean().item<double>();
}

} // namespace troupe::learner
