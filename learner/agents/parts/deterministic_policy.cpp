#include "learner/agents/parts/deterministic_policy.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/layers.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {

DeterministicPolicy::DeterministicPolicy(std::string agent,
                                         const replay::TransitionSpec& transitions, Mlp layers,
                                         const EncoderShape* encoder,
                                         const ActionNoiseConfig& noise, bool normalised)
    : MlpPolicy(std::move(agent), transitions, std::move(layers), encoder, normalised),
      noise_(make_action_noise(noise, this->layers())) {
  noise_->load(parameters());
}

void DeterministicPolicy::load(std::span<const float> parameters) {
  MlpPolicy::load(parameters);
  noise_->load(this->parameters());
}

void DeterministicPolicy::act(const Observations& observations, std::span<float> actions) {
  const float* raw = outputs(observations, actions);
  kernel_table().tanh(raw, actions.data(), static_cast<std::int64_t>(actions.size()));
}

void DeterministicPolicy::explore(const Observations& observations, const Exploration& exploration,
                                  std::span<float> actions) {
  Policy::explore(observations, exploration, actions);
  noise_->apply(inputs(), exploration, actions);
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
                                            int shift_pixels, const AgentSetting& setting) {
  if (!setting.picture)
    return {};
  const AgentSetting::Picture& picture = *setting.picture;
  auto found = small_pictures(agent, encoder, least_image(encoder), picture);
  if (shift_pixels >= std::min(picture.height, picture.width))
    found.push_back({"shift_pixels", "is " + std::to_string(shift_pixels)
                                         + "; it must be smaller than the picture, "
                                         + std::to_string(picture.height) + " x "
                                         + std::to_string(picture.width)});
  return found;
}

} // namespace troupe::learner
