#include "learner/agents/parts/state_policy.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {
namespace {

Mlp declared(Mlp mlp, ParameterLayout& layout) {
  mlp.declare(layout, "policy");
  return mlp;
}

} // namespace

std::vector<LayerSpec> relu_layers(const std::vector<std::int64_t>& widths, std::int64_t outputs) {
  std::vector<LayerSpec> layers;
  for (std::size_t i = 0; i < widths.size(); ++i)
    layers.push_back({"layer" + std::to_string(i), widths[i], Activation::relu});
  layers.push_back({"output", outputs, Activation::none});
  return layers;
}

std::int64_t state_size(const replay::TransitionSpec& transitions, const std::string& agent) {
  const env::ArraySpec observation = transitions.observation();
  if (transitions.action_size < 1)
    throw std::invalid_argument("the action has no dimension; " + agent + " needs at least 1");
  require_continuous(transitions, agent);
  require_one_array(transitions, agent);
  if (observation.shape.size() != 1 || observation.type != env::ElementType::float32)
    throw std::invalid_argument("observation '" + observation.name + "' is "
                                + env::element_name(observation.type) + " with "
                                + std::to_string(observation.shape.size()) + " dimensions; " + agent
                                + " takes float32 [n]: leave environment.pixels out, or choose an "
                                  "agent that learns from pixels (`troupe list agents`)");
  return static_cast<std::int64_t>(observation.elements());
}

StatePolicy::StatePolicy(std::string agent, const replay::TransitionSpec& transitions,
                         const std::vector<std::int64_t>& widths, std::int64_t outputs_per_action)
    : agent_(std::move(agent)),
      state_size_(learner::state_size(transitions, agent_)),
      action_size_(transitions.action_size),
      mlp_(declared(Mlp(state_size_, relu_layers(widths, action_size_ * outputs_per_action)),
                    layout_)),
      parameters_(at::zeros({layout_.count()}, at::kFloat)),
      acting_(mlp_) {
  acting_.load(mlp_.bind(layout_, parameters_));
}

void StatePolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, parameters_, agent_);
  acting_.load(mlp_.bind(layout_, parameters_));
}

const float* StatePolicy::outputs(const Observations& observations, std::span<float> actions) {
  const std::int64_t batch = observations.batch;
  const std::size_t bytes = observations.frames.size() * observations.frame_bytes;
  const auto wanted = static_cast<std::size_t>(batch * state_size_) * sizeof(float);
  if (batch < 1 || bytes != wanted
      || static_cast<std::int64_t>(actions.size()) != batch * action_size_)
    throw std::invalid_argument(
        "the policy got " + std::to_string(bytes) + " bytes of observations and "
        + std::to_string(actions.size()) + " actions for a batch of " + std::to_string(batch)
        + "; one observation has " + std::to_string(state_size_ * std::int64_t{sizeof(float)})
        + " bytes, one action " + std::to_string(action_size_) + " values");
  states_.resize(static_cast<std::size_t>(batch * state_size_));
  auto* to = reinterpret_cast<std::byte*>(states_.data());
  for (const std::byte* frame : observations.frames) {
    std::memcpy(to, frame, observations.frame_bytes);
    to += observations.frame_bytes;
  }
  if (!kernel_table().all_finite(states_.data(), batch * state_size_))
    throw std::runtime_error("NaN or infinity in an observation given to the policy");
  return acting_.forward(states_.data(), batch);
}

} // namespace troupe::learner
