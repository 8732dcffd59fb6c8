#include "learner/agents/parts/mlp_policy.hpp"

#include <stdexcept>
#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {

std::int64_t state_size(const replay::TransitionSpec& transitions, const std::string& agent) {
  require_continuous(transitions, agent);
  require_one_array(transitions, agent);
  const env::ArraySpec observation = transitions.observation();
  if (observation.shape.size() != 1 || observation.type != env::ElementType::float32)
    throw std::invalid_argument("observation '" + observation.name + "' is "
                                + env::element_name(observation.type) + " with "
                                + std::to_string(observation.shape.size()) + " dimensions; " + agent
                                + " takes float32 [n]: leave environment.pixels out, or choose an "
                                  "agent that learns from pixels (`troupe list agents`)");
  return static_cast<std::int64_t>(observation.elements());
}

MlpPolicy::MlpPolicy(std::string agent, const replay::TransitionSpec& transitions, Mlp layers,
                     const EncoderShape* encoder, bool normalised)
    : agent_(std::move(agent)),
      transitions_(transitions),
      layers_(std::move(layers)),
      encoder_(encoder != nullptr ? *encoder : EncoderShape()),
      pixels_(encoder != nullptr),
      normalised_(normalised),
      network_(transitions, layers_, encoder) {
  if (pixels_)
    encoder_.declare(layout_, "encoder");
  if (normalised_)
    layout_.add("observation", {2 * layers_.layer_inputs(0)});
  layers_.declare(layout_, "policy");
  parameters_ = at::zeros({layout_.count()}, at::kFloat);
  pack();
}

void MlpPolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, parameters_, agent_);
  pack();
}

void MlpPolicy::pack() {
  network_.load(parameters(),
                pixels_ ? encoder_.bind(layout_, parameters_) : EncoderShape::Tensors(),
                normalised_ ? layout_.stored_view(parameters_, 0) : at::Tensor());
}

PolicyGraph MlpPolicy::tanh_graph() const {
  PolicyGraph graph = graph_of(transitions_);
  auto layers = parameters();
  if (normalised_)
    add_moments(graph, layout_.stored_view(parameters_, 0));
  if (pixels_) {
    add_encoder(graph, transitions_, encoder_, encoder_.bind(layout_, parameters_));
    layers[0].weight = rows_by_channel(encoder_, layers[0].weight);
  }
  layers.back().weight = layers.back().weight.narrow(1, 0, action_size());
  layers.back().bias = layers.back().bias.narrow(0, 0, action_size());
  add_mlp(graph, layers_, layers);
  graph.actions = {{.kind = GraphAction::Kind::tanh, .count = action_size()}};
  return graph;
}

} // namespace troupe::learner
