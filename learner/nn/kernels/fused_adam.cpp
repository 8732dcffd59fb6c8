#include "learner/nn/kernels/fused_adam.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/parallel.hpp"

namespace troupe::learner {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;

} // namespace

FusedAdam::FusedAdam(at::Tensor flat, double learning_rate, double weight_decay, double epsilon)
    : Optimizer({torch::optim::OptimizerParamGroup({flat})},
                std::make_unique<torch::optim::AdamOptions>(learning_rate)),
      mean_(at::zeros_like(flat)),
      square_(at::zeros_like(flat)),
      weight_decay_(weight_decay),
      epsilon_(epsilon) {}

at::Tensor FusedAdam::step(LossClosure closure) {
  at::Tensor loss;
  if (closure)
    loss = closure();
  at::NoGradGuard no_gradient;
  at::Tensor parameter = param_groups_.front().params().front();
  const at::Tensor gradient = parameter.grad();
  if (!gradient.defined())
    return loss;
  ++steps_;
  const double rate = param_groups_.front().options().get_lr();
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
  const double correction2 = std::sqrt(1 - std::pow(kBeta2, static_cast<double>(steps_)));
  const double decay = 1 - rate * weight_decay_;
  if (!uses_kernels(parameter)) {
    if (weight_decay_ > 0)
      parameter.mul_(decay);
    mean_.lerp_(gradient, 1 - kBeta1);
    square_.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    const at::Tensor denominator = (square_.sqrt() / correction2).add_(epsilon_);
    parameter.addcdiv_(mean_, denominator, -rate / correction1);
    return loss;
  }
  const auto update = [&](std::int64_t first, std::int64_t last) {
    kernel_table().adam(
        parameter.mutable_data_ptr<float>() + first, gradient.const_data_ptr<float>() + first,
        mean_.mutable_data_ptr<float>() + first, square_.mutable_data_ptr<float>() + first,
        last - first, 1.0f, static_cast<float>(decay), static_cast<float>(rate / correction1),
        static_cast<float>(kBeta1), static_cast<float>(kBeta2), static_cast<float>(1 / correction2),
        static_cast<float>(epsilon_));
  };
  constexpr std::int64_t kGrain = 1 << 15;
  if (at::get_num_threads() == 1 || parameter.numel() < 2 * kGrain)
    update(0, parameter.numel());
  else
    over_threads(parameter.numel(), kGrain, update);
  return loss;
}

void FusedAdam::step_on_device(const at::Tensor& gradient, const at::Tensor& steps,
                               const at::Tensor& left_out, const at::Tensor& rate) {
  at::NoGradGuard no_gradient;
  const auto& group = param_groups_.front();
  const auto step_by = [&](const auto& learning_rate) {
    at::_fused_adamw_({group.params().front()}, {gradient}, {mean_}, {square_}, {}, {steps},
                      learning_rate, kBeta1, kBeta2, weight_decay_, epsilon_,
                      /*amsgrad=*/false, /*maximize=*/false, {}, left_out);
  };
  if (rate.defined())
    step_by(rate);
  else
    step_by(group.options().get_lr());
}

} // namespace troupe::learner
