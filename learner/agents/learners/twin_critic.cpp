#include "learner/agents/learners/twin_critic.hpp"

#include <utility>

#include <torch/types.h>

#include "learner/nn/mlp.hpp"

namespace troupe::learner {

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
  group_.build(context, initial, training.learning_rate, training.gradient_norm,
               training.weight_decay);
  group_.keep_halves(training.rounding);
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
  const auto rows = static_cast<double>(target.size(0));
  std::array<at::Tensor, 2> losses;
  for (std::size_t i = 0; i < 2; ++i) {
    const at::Tensor error =
        networks_[i].forward(parameters_[i], state, action, tapes_[i], workspace_).view({-1})
        - target;
    const at::Tensor weighted = weight.defined() ? error * weight : error;
    losses[i] = (weighted * error).mean();
    tapes_[i].gradient().view({-1}).copy_(weighted * (2 * scale / rows));
    networks_[i].backward(parameters_[i], gradients_[i], tapes_[i], state_gradient != nullptr,
                          workspace_);
    errors_ = i == 0 ? error.abs() : (errors_ + error.abs()) / 2;
  }
  if (state_gradient != nullptr)
    at::add_out(*state_gradient, tapes_[0].input_gradient, tapes_[1].input_gradient);
  return (losses[0] + losses[1]) * scale;
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
  const at::Tensor first = (values[0] <= values[1]).to(values[0].scalar_type());
  const at::Tensor mean = at::minimum(values[0], values[1]).mean();
  tapes_[0].gradient().view({-1}).copy_(first * share);
  tapes_[1].gradient().view({-1}).copy_((1 - first) * share);
  for (std::size_t i = 0; i < 2; ++i)
    networks_[i].backward_to_extra(parameters_[i], tapes_[i], workspace_);
  return {mean, tapes_[0].extra_gradient + tapes_[1].extra_gradient, {}};
}

} // namespace troupe::learner
