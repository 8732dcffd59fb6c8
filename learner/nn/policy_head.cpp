#include "learner/nn/policy_head.hpp"

#include <cmath>

#include <torch/types.h>

namespace troupe::learner {
namespace {

constexpr double kFree = 1.5;       // |raw| up to this value costs nothing
constexpr double kSaturated = 0.95; // actions beyond this count as saturated

template <class T>
HeadReport on_cpu(const at::Tensor& raw, const at::Tensor& action,
                  const at::Tensor& action_gradient, double clip_norm, double penalty_weight,
                  at::Tensor& gradient) {
  const std::int64_t batch = raw.size(0);
  const std::int64_t size = raw.size(1);
  const T* x = raw.const_data_ptr<T>();
  const T* a = action.const_data_ptr<T>();
  const T* in = action_gradient.const_data_ptr<T>();
  T* out = gradient.mutable_data_ptr<T>();
  const double slope = 2 * penalty_weight / static_cast<double>(batch * size);
  double penalty = 0, saturation = 0;
  for (std::int64_t i = 0; i < batch; ++i, x += size, a += size, in += size, out += size) {
    double scale = 1;
    if (clip_norm > 0) {
      double square = 0;
      for (std::int64_t j = 0; j < size; ++j)
        square += static_cast<double>(in[j]) * static_cast<double>(in[j]);
      const double norm = std::sqrt(square) * static_cast<double>(batch); // of dQ/da
      scale = norm > clip_norm ? clip_norm / norm : 1;
    }
    for (std::int64_t j = 0; j < size; ++j) {
      const double excess = std::fmax(std::fabs(static_cast<double>(x[j])) - kFree, 0.0);
      const double tanh_slope = 1 - static_cast<double>(a[j]) * static_cast<double>(a[j]);
      penalty += excess * excess;
      saturation += std::fabs(static_cast<double>(a[j])) > kSaturated ? 1 : 0;
      out[j] = static_cast<T>(static_cast<double>(in[j]) * scale * tanh_slope
                              + std::copysign(slope * excess, static_cast<double>(x[j])));
    }
  }
  const auto count = static_cast<double>(batch * size);
  return {at::scalar_tensor(penalty * penalty_weight / count, at::kDouble),
          at::scalar_tensor(saturation / count, at::kDouble)};
}

} // namespace

HeadReport policy_head_backward(const at::Tensor& raw, const at::Tensor& action,
                                at::Tensor& action_gradient, double clip_norm,
                                double penalty_weight, at::Tensor& gradient) {
  if (raw.is_cpu() && raw.scalar_type() == at::kFloat)
    return on_cpu<float>(raw, action, action_gradient, clip_norm, penalty_weight, gradient);
  if (raw.is_cpu() && raw.scalar_type() == at::kDouble)
    return on_cpu<double>(raw, action, action_gradient, clip_norm, penalty_weight, gradient);
  if (clip_norm > 0) {
    const at::Tensor norm =
        action_gradient.square().sum(1, true).sqrt() * static_cast<double>(raw.size(0));
    action_gradient.mul_((clip_norm / norm.clamp_min(1e-30)).clamp_max(1));
  }
  const at::Tensor excess = (raw.abs() - kFree).clamp_min(0);
  const double slope = 2 * penalty_weight / static_cast<double>(raw.numel());
  gradient.copy_(action_gradient * (1 - action.square()) + slope * excess * raw.sign());
  return {excess.square().mean() * penalty_weight,
          (action.abs() > kSaturated).to(raw.scalar_type()).mean()};
}

} // namespace troupe::learner
