#include "learner/agents/parts/value_streams.hpp"

#include <torch/types.h>

#include "learner/nn/activation_probe.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {

ValueStreams::Stream::Stream(ParameterLayout& layout, const std::string& name,
                             const ValueStreamsOptions& options, std::int64_t outputs) {
  std::int64_t inputs = options.features;
  if (options.hidden > 0) {
    hidden.emplace(layout, name + ".hidden", inputs, options.hidden, options.noisy);
    inputs = options.hidden;
  }
  output = Linear(layout, name + ".output", inputs, outputs, options.noisy);
}

void ValueStreams::Stream::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                                      at::Generator& generator) const {
  if (hidden)
    hidden->initialise(layout, flat, generator);
  output.initialise(layout, flat, generator);
}

at::Tensor ValueStreams::Stream::forward(const Leaves& leaves, const at::Tensor& features,
                                         const NoiseSource* noise) const {
  if (!hidden)
    return output.forward(leaves, features, noise);
  const at::Tensor x = at::relu(hidden->forward(leaves, features, noise));
  if (ActivationProbe* const probe = ActivationProbe::active())
    probe->see_units(hidden->weight(leaves), x);
  return output.forward(leaves, x, noise);
}

ValueStreams::ValueStreams(ParameterLayout& layout, const ValueStreamsOptions& options)
    : options_(options), advantage_(layout, "advantage", options, options.choices * options.atoms) {
  if (options.dueling)
    value_.emplace(layout, "value", options, options.atoms);
}

void ValueStreams::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                              at::Generator& generator) const {
  advantage_.initialise(layout, flat, generator);
  if (value_)
    value_->initialise(layout, flat, generator);
}

at::Tensor ValueStreams::combined(const at::Tensor& advantage, const at::Tensor& value) const {
  const at::Tensor each = advantage.reshape({-1, options_.choices, options_.atoms});
  return each - each.mean(1, true) + value.reshape({-1, 1, options_.atoms});
}

at::Tensor ValueStreams::forward(const Leaves& leaves, const at::Tensor& features,
                                 const NoiseSource* noise) const {
  const at::Tensor advantage = advantage_.forward(leaves, features, noise);
  if (!value_)
    return advantage.view({-1, options_.choices, options_.atoms});
  return combined(advantage, value_->forward(leaves, features, noise));
}

void ValueStreams::describe(const Leaves& leaves, PolicyGraph& graph) const {
  if (!value_) {
    if (advantage_.hidden)
      add_linear(graph, advantage_.hidden->weight(leaves), advantage_.hidden->bias(leaves),
                 GraphLayer::Activation::relu);
    return add_linear(graph, advantage_.output.weight(leaves), advantage_.output.bias(leaves));
  }
  const at::Tensor advantage = advantage_.output.weight(leaves);
  const at::Tensor value = value_->output.weight(leaves);
  const at::Tensor bias =
      combined(advantage_.output.bias(leaves), value_->output.bias(leaves)).flatten();
  if (!advantage_.hidden)
    return add_linear(graph, combined(advantage, value).flatten(1), bias);
  const Linear& of_advantage = *advantage_.hidden;
  const Linear& of_value = *value_->hidden;
  add_linear(graph, at::cat({of_advantage.weight(leaves), of_value.weight(leaves)}, 1),
             at::cat({of_advantage.bias(leaves), of_value.bias(leaves)}),
             GraphLayer::Activation::relu);
  add_linear(graph,
             at::cat({combined(advantage, at::zeros_like(value)).flatten(1),
                      combined(at::zeros_like(advantage), value).flatten(1)}),
             bias);
}

} // namespace troupe::learner
