#include "learner/agents/parts/deterministic_policy.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {

DeterministicPolicy::DeterministicPolicy(std::string agent,
                                         const replay::TransitionSpec& transitions, Mlp layers,
                                         const EncoderShape* encoder,
                                         const ActionNoiseConfig& noise, bool normalised)
    : agent_(std::move(agent)),
      transitions_(transitions),
      layers_(std::move(layers)),
      encoder_(encoder != nullptr ? *encoder : EncoderShape()),
      pixels_(encoder != nullptr),
      normalised_(normalised),
      network_(transitions, layers_, encoder),
      noise_(make_action_noise(noise, layers_)) {
  if (pixels_)
    encoder_.declare(layout_, "encoder");
  if (normalised_)
    layout_.add("observation", {2 * layers_.layer_inputs(0)});
  layers_.declare(layout_, "policy");
  parameters_ = at::zeros({layout_.count()}, at::kFloat);
  pack();
}

void DeterministicPolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, parameters_, agent_);
  pack();
}

void DeterministicPolicy::pack() {
  const auto layers = layers_.bind(layout_, parameters_);
  noise_->load(layers);
  network_.load(layers, pixels_ ? encoder_.bind(layout_, parameters_) : EncoderShape::Tensors(),
                normalised_ ? layout_.stored_view(parameters_, 0) : at::Tensor());
}

void DeterministicPolicy::act(const Observations& observations, std::span<float> actions) {
  const float* raw = network_.outputs(observations, actions);
  kernel_table().tanh(raw, actions.data(), static_cast<std::int64_t>(actions.size()));
}

void DeterministicPolicy::explore(const Observations& observations, const Exploration& exploration,
                                  std::span<float> actions) {
  Policy::explore(observations, exploration, actions);
  noise_->apply(network_.inputs(), exploration, actions);
}

void DeterministicPolicy::log_probability(const Observations& observations,
                                          const Exploration& exploration,
                                          std::span<const float> actions, std::span<double> out) {
  if (!has_density())
    return Policy::log_probability(observations, exploration, actions, out);
  std::vector<float> means(actions.size());
  act(observations, means);
  noise_->log_probability(exploration, means, actions, out);
}

std::optional<PolicyGraph> DeterministicPolicy::graph() const {
  PolicyGraph graph = graph_of(transitions_);
  auto layers = layers_.bind(layout_, parameters_);
  if (normalised_)
    add_moments(graph, layout_.stored_view(parameters_, 0));
  if (pixels_) {
    add_encoder(graph, transitions_, encoder_, encoder_.bind(layout_, parameters_));
    layers[0].weight = rows_by_channel(encoder_, layers[0].weight);
  }
  add_mlp(graph, layers_, layers);
  graph.actions = {{.kind = GraphAction::Kind::tanh, .count = transitions_.action_size}};
  return graph;
}

ImageShape picture_shape(const replay::TransitionSpec& transitions, const std::string& agent) {
  const env::ArraySpec observation = transitions.observation();
  if (observation.type != env::ElementType::uint8 || observation.shape.size() != 3)
    throw std::invalid_argument(
        "observation '" + observation.name + "' is " + env::element_name(observation.type)
        + " with " + std::to_string(observation.shape.size()) + " dimensions; " + agent
        + " takes uint8 [channels, height, width]: give the block environment.pixels, or choose "
          "an agent that learns from states (`troupe list agents`)");
  require_one_array(transitions, agent);
  return {observation.shape[0], observation.shape[1], observation.shape[2]};
}

std::vector<OptionProblem> encoder_problems(const std::string& agent, const std::string& encoder,
                                            int shift_pixels,
                                            const AgentSetting::Picture& picture) {
  std::vector<OptionProblem> found;
  const std::int64_t least = least_image(encoder);
  for (const auto& [key, size] : {std::pair{"environment.pixels.height", picture.height},
                                  {"environment.pixels.width", picture.width}})
    if (size < least)
      found.push_back({key, "is " + std::to_string(size) + "; it must be at least "
                                + std::to_string(least) + " for " + agent + ".encoder \"" + encoder
                                + "\""});
  if (shift_pixels >= std::min(picture.height, picture.width))
    found.push_back({"shift_pixels", "is " + std::to_string(shift_pixels)
                                         + "; it must be smaller than the picture, "
                                         + std::to_string(picture.height) + " x "
                                         + std::to_string(picture.width)});
  return found;
}

} // namespace troupe::learner
