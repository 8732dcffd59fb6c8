#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "learner/agents/parts/action_noise.hpp"
#include "learner/agents/parts/mlp_policy.hpp"

namespace troupe::learner {

/// A policy whose actions are the tanh of a network's outputs, with noise for exploration.
class DeterministicPolicy : public MlpPolicy {
public:
  /// For `encoder` and `normalised` see MlpPolicy.
  DeterministicPolicy(std::string agent, const replay::TransitionSpec& transitions, Mlp layers,
                      const EncoderShape* encoder, const ActionNoiseConfig& noise,
                      bool normalised = false);

  void load(std::span<const float> parameters) override;
  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override;
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override;
  bool has_density() const override { return noise_->has_density(); }
  void log_probability(const Observations& observations, const Exploration& exploration,
                       std::span<const float> actions, std::span<double> out) override;
  std::optional<PolicyGraph> graph() const override { return tanh_graph(); }
  void save_exploration(std::vector<std::byte>& out) const override { noise_->save_state(out); }
  std::span<const std::byte> load_exploration(std::span<const std::byte> in) override {
    return noise_->load_state(in);
  }

private:
  std::unique_ptr<ActionNoise> noise_;
};

/// Channels, height and width of picture observations. Throws std::invalid_argument naming the
/// observation and `agent` if it is not a picture.
ImageShape picture_shape(const replay::TransitionSpec& transitions, const std::string& agent);

/// Returns the problems of an agent's keys `encoder` and `shift_pixels` with the size of the run's
/// pictures.
std::vector<OptionProblem> encoder_problems(const std::string& agent, const std::string& encoder,
                                            int shift_pixels, const AgentSetting& setting);

} // namespace troupe::learner
