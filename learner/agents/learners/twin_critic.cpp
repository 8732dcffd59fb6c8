#include "learner/agents/learners/twin_critic.hpp"

#include <cmath>
#include <utility>

#include <torch/types.h>

#include "learner/nn/mlp.hpp"

namespace troupe::learner {
namespace {

/// Returns scale * the mean of weight * (value - target)^2, and writes its gradient and the errors.
/// values and gradient: [batch, 1]. `weight` may be undefined.
at::Tensor squared_loss(const at::Tensor& values, const at::Tensor& target,
                        const at::Tensor& weight, double scale, at::Tensor& gradient,
                        at::Tensor& errors) {
  const std::int64_t rows = target.size(0);
  const double share = scale / static_cast<double>(rows);
  if (!uses_kernels(values) || !target.is_contiguous()) {
    errors = values.view({-1}) - target;
    const at::Tensor weighted = weight.defined() ? errors * weight : errors;
    gradient.view({-1}).copy_(weighted * (2 * share));
    return (weighted * errors).sum() * share;
  }
  errors = at::empty({rows}, values.options());
  const auto* value = values.const_data_ptr<float>();
  const auto* wanted = target.const_data_ptr<float>();
  const auto* weights = weight.defined() ? weight.const_data_ptr<float>() : nullptr;
  auto* error = errors.mutable_data_ptr<float>();
  auto* out = gradient.mutable_data_ptr<float>();
  double loss = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    error[i] = value[i] - wanted[i];
    const float weighted = weights != nullptr ? error[i] * weights[i] : error[i];
    out[i] = weighted * static_cast<float>(2 * share);
    loss += static_cast<double>(weighted) * static_cast<double>(error[i]);
  }
  return at::scalar_tensor(loss * share, values.options());
}

/// Returns the mean of the smaller of both values of each row, and writes `share` to the gradient
/// of that value, 0 to that of the other.
at::Tensor smaller_gradients(const at::Tensor& first, const at::Tensor& second, double share,
                             at::Tensor& of_first, at::Tensor& of_second) {
  if (!uses_kernels(first)) {
    const at::Tensor is_first = (first <= second).to(first.scalar_type());
    of_first.view({-1}).copy_(is_first * share);
    of_second.view({-1}).copy_((1 - is_first) * share);
    return at::minimum(first, second).mean();
  }
  const auto* a = first.const_data_ptr<float>();
  const auto* b = second.const_data_ptr<float>();
  auto* of_a = of_first.mutable_data_ptr<float>();
  auto* of_b = of_second.mutable_data_ptr<float>();
  const auto part = static_cast<float>(share);
  double sum = 0;
  for (std::int64_t i = 0; i < first.numel(); ++i) {
    const bool is_first = a[i] <= b[i];
    of_a[i] = is_first ? part : 0;
    of_b[i] = is_first ? 0 : part;
    sum += static_cast<double>(is_first || std::isnan(a[i]) ? a[i] : b[i]);
  }
  return at::scalar_tensor(sum / static_cast<double>(first.numel()), first.options());
}

} // namespace

TwinCritic::TwinCritic(std::int64_t state_size, std::int64_t action_size,
                       const std::vector<std::int64_t>& widths, ParameterLayout front, int blocks) {
  ParameterLayout layout = std::move(front);
  for (std::size_t i = 0; i < 2; ++i) {
    networks_[i] = Mlp(state_size, relu_layers(widths, 1, blocks), 0, action_size);
    networks_[i].declare(layout, "critic" + std::to_string(i + 1));
  }
  group_.declare(std::move(layout));
}

void TwinCritic::build(ReplicaContext& context, const at::TensorOptions& options,
                       at::Generator& generator, const Training& training) {
  build(context, initial(options, Mlp::Weights::uniform, generator).to(options.device()), training);
}

at::Tensor TwinCritic::initial(const at::TensorOptions& options, Mlp::Weights weights,
                               at::Generator& generator) const {
  at::Tensor flat = at::zeros({group_.layout().count()}, options.device(at::kCPU));
  for (const Mlp& network : networks_)
    network.initialise(group_.layout(), flat, weights, generator);
  return flat;
}

void TwinCritic::build(ReplicaContext& context, const at::Tensor& initial,
                       const Training& training) {
  group_.build(context, initial, training);
  for (std::size_t i = 0; i < 2; ++i) {
    parameters_[i] = networks_[i].bind(group_.layout(), group_.flat(), group_.half());
    gradients_[i] = networks_[i].bind(group_.layout(), group_.gradient());
    targets_[i] = networks_[i].bind(group_.layout(), group_.target(), group_.target_half());
  }
}

at::Tensor TwinCritic::smaller(const Layers& layers, std::array<Tape, 2>& tapes,
                               const at::Tensor& state, const at::Tensor& action) {
  std::array<at::Tensor, 2> values;
  for (std::size_t i = 0; i < 2; ++i)
    values[i] = networks_[i].forward(layers[i], state, action, tapes[i], workspace_).view({-1});
  return at::minimum(values[0], values[1]);
}

at::Tensor TwinCritic::backward(const at::Tensor& state, const at::Tensor& action,
                                const at::Tensor& target, const at::Tensor& weight, double scale,
                                at::Tensor* state_gradient) {
  std::array<at::Tensor, 2> losses, errors;
  for (std::size_t i = 0; i < 2; ++i) {
    const at::Tensor& values =
        networks_[i].forward(parameters_[i], state, action, tapes_[i], workspace_);
    losses[i] = squared_loss(values, target, weight, scale, tapes_[i].gradient(), errors[i]);
    networks_[i].backward(parameters_[i], gradients_[i], tapes_[i], state_gradient != nullptr,
                          workspace_);
  }
  errors_ = weight.defined() ? (errors[0].abs() + errors[1].abs()) / 2 : at::Tensor();
  if (state_gradient != nullptr)
    at::add_out(*state_gradient, tapes_[0].input_gradient, tapes_[1].input_gradient);
  return losses[0] + losses[1];
}

void TwinCritic::learn(AgentUpdate& update, const at::Tensor& state, const at::Tensor& action,
                       const at::Tensor& target, const at::Tensor& weight, double scale) {
  const at::Tensor loss = backward(state, action, target, weight, scale);
  update.step(group_, "critic_loss", loss);
  update.tell("critic_loss", loss);
}

TwinCritic::Value TwinCritic::value(const at::Tensor& state, const at::Tensor& action,
                                    bool smaller) {
  const double share = 1.0 / static_cast<double>(action.size(0));
  std::array<at::Tensor, 2> values;
  for (std::size_t i = 0; i < (smaller ? 2U : 1U); ++i)
    values[i] =
        networks_[i].forward(parameters_[i], state, action, tapes_[i], workspace_).view({-1});
  if (!smaller) {
    tapes_[0].gradient().fill_(share);
    networks_[0].backward_to_extra(parameters_[0], tapes_[0], workspace_);
    return {values[0].mean(), tapes_[0].extra_gradient, values[0]};
  }
  const at::Tensor mean =
      smaller_gradients(values[0], values[1], share, tapes_[0].gradient(), tapes_[1].gradient());
  for (std::size_t i = 0; i < 2; ++i)
    networks_[i].backward_to_extra(parameters_[i], tapes_[i], workspace_);
  return {mean, tapes_[0].extra_gradient + tapes_[1].extra_gradient, {}};
}

} // namespace troupe::learner
