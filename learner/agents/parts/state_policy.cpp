#include "learner/agents/parts/state_policy.hpp"

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

StatePolicy::StatePolicy(std::string agent, const replay::TransitionSpec& transitions,
                         const std::vector<std::int64_t>& widths, std::int64_t outputs_per_action,
                         const BlocksConfig& blocks)
    : agent_(std::move(agent)),
      transitions_(transitions),
      action_size_(transitions.action_size),
      mlp_(learner::state_size(transitions, agent_),
           relu_layers(widths, action_size_ * outputs_per_action, blocks.policy_blocks)),
      acting_(transitions, mlp_),
      normalised_(blocks.normalise_observations) {
  if (normalised_)
    layout_.add("observation", {2 * learner::state_size(transitions, agent_)});
  mlp_.declare(layout_, "policy");
  parameters_ = at::zeros({layout_.count()}, at::kFloat);
  pack();
}

void StatePolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, parameters_, agent_);
  pack();
}

void StatePolicy::pack() {
  acting_.load(mlp_.bind(layout_, parameters_), {},
               normalised_ ? layout_.stored_view(parameters_, 0) : at::Tensor());
}

PolicyGraph StatePolicy::layers(std::int64_t outputs) const {
  PolicyGraph graph = graph_of(transitions_);
  auto layers = mlp_.bind(layout_, parameters_);
  if (normalised_)
    add_moments(graph, layout_.stored_view(parameters_, 0));
  layers.back().weight = layers.back().weight.narrow(1, 0, outputs);
  layers.back().bias = layers.back().bias.narrow(0, 0, outputs);
  add_mlp(graph, mlp_, layers);
  return graph;
}

} // namespace troupe::learner
