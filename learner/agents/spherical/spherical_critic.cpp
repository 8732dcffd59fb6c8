#include "learner/agents/spherical/spherical_critic.hpp"

#include <string>
#include <utility>

#include <torch/types.h>

namespace troupe::learner {

SphericalCritic::SphericalCritic(const Shape& shape) : shape_(shape) {
  ParameterLayout layout;
  for (int i = 0; i < shape.critics; ++i)
    networks_
        .emplace_back(shape.states + shape.actions, shape.width, shape.blocks, shape.support.atoms)
        .declare(layout, "critic" + std::to_string(i + 1));
  group_.declare(std::move(layout));
}

void SphericalCritic::build(ReplicaContext& context, const at::TensorOptions& options,
                            at::Generator& generator, const Training& training) {
  const at::Tensor flat = at::zeros({group_.layout().count()}, options.device(at::kCPU));
  for (const SphericalNetwork& network : networks_)
    network.initialise(group_.layout(), flat, generator);
  group_.build(context, flat.to(options.device()), training);
  parameters_.clear();
  gradients_.clear();
  targets_.clear();
  for (const SphericalNetwork& network : networks_) {
    parameters_.push_back(network.bind(group_.layout(), group_.flat(), group_.half()));
    gradients_.push_back(network.bind(group_.layout(), group_.gradient()));
    targets_.push_back(network.bind(group_.layout(), group_.target(), group_.target_half()));
  }
}

at::Tensor SphericalCritic::means(const at::Tensor& logits) const {
  return logits.softmax(1).mv(shape_.support.values(logits.options()));
}

at::Tensor SphericalCritic::smaller_logits(const std::vector<SphericalNetwork::Tensors>& parameters,
                                           const at::Tensor& state, const at::Tensor& action) {
  const at::Tensor pair = at::cat({state, action}, 1);
  at::Tensor chosen = networks_[0].forward(parameters[0], pair, trace_, workspace_);
  for (std::size_t i = 1; i < networks_.size(); ++i) {
    const at::Tensor other = networks_[i].forward(parameters[i], pair, trace_, workspace_);
    chosen = at::where((means(other) < means(chosen)).unsqueeze(1), other, chosen);
  }
  return chosen.contiguous();
}

void SphericalCritic::learn(AgentUpdate& update, const at::Tensor& state, const at::Tensor& action,
                            const Target& target, const at::Tensor& weight) {
  const at::Tensor pair = at::cat({state, action}, 1);
  row_losses_ = at::zeros({pair.size(0)}, pair.options());
  at::Tensor loss;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    const at::Tensor logits = networks_[i].forward(parameters_[i], pair, trace_, workspace_);
    at::Tensor gradient = at::empty_like(logits);
    const at::Tensor losses = at::empty_like(row_losses_);
    const at::Tensor of_one =
        categorical_loss(shape_.support, target.logits, target.reward, target.discount, 1, logits,
                         gradient, workspace_, {.weight = weight, .losses = losses});
    loss = loss.defined() ? loss + of_one : of_one;
    networks_[i].backward(parameters_[i], &gradients_[i], trace_, gradient, workspace_);
    row_losses_.add_(losses, 1.0 / static_cast<double>(networks_.size()));
  }
  update.step(group_, "critic_loss", loss);
  update.tell("critic_loss", loss);
  for (const SphericalNetwork::Tensors& parameters : parameters_)
    SphericalNetwork::project(parameters);
  group_.refresh_halves();
}

SphericalCritic::Value SphericalCritic::value(const at::Tensor& state, const at::Tensor& action) {
  const at::Tensor pair = at::cat({state, action}, 1);
  std::vector<SphericalNetwork::Trace> traces(networks_.size());
  std::vector<at::Tensor> gradients, values;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    const at::Tensor logits = networks_[i].forward(parameters_[i], pair, traces[i], workspace_);
    expected_value(shape_.support, logits, gradients.emplace_back(at::empty_like(logits)));
    values.push_back(means(logits));
  }
  at::Tensor smaller = values[0];
  if (values.size() > 1) {
    smaller = at::minimum(values[0], values[1]);
    const at::Tensor first = (values[0] <= values[1]).unsqueeze(1);
    gradients[0].mul_(first);
    gradients[1].mul_(first.logical_not());
  }
  at::Tensor of_pair = at::zeros_like(pair);
  for (std::size_t i = 0; i < networks_.size(); ++i) // the gradients are those of -mean
    of_pair.sub_(
        networks_[i].backward(parameters_[i], nullptr, traces[i], gradients[i], workspace_));
  return {smaller.mean(), of_pair.narrow(1, shape_.states, shape_.actions).contiguous()};
}

} // namespace troupe::learner
