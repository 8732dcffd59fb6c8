#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/exploration.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// How a policy explores that gives one action for an observation. The scale says the same of each
/// kind: the standard deviation from the policy's actions, in units of the action range [-1, 1].
struct ActionNoiseConfig {
  /// "gaussian": fresh noise at each step. "ornstein_uhlenbeck": noise that is correlated in time,
  /// from 0 at the beginning of an episode. "parameters": each episode is played with a perturbed
  /// copy of the network (Plappert et al. 2018).
  std::string kind = "gaussian";
  NoiseConfig scale{};
  double reversion = 0.15; // of Ornstein and Uhlenbeck's noise towards 0, per agent step

  /// Its keys in an agent's block: noise, noise_reversion and those of NoiseConfig.
  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent) const;
};

/// Makes the actions of a batch of environments explore. Remembers something of each environment;
/// the rows of a batch are always the same ones. One thread.
class ActionNoise {
public:
  virtual ~ActionNoise() = default;

  /// The policy's parameters are these from now on; they are read when needed.
  virtual void load(const std::vector<LayerTensors>& /*parameters*/) {}
  /// x: [batch, inputs] of the network; actions: [batch, action size], the tanh of its outputs.
  /// Throws std::runtime_error naming the row of an action that is not finite.
  virtual void apply(const float* x, const Exploration& exploration, std::span<float> actions) = 0;

  /// As Policy::has_density() and log_probability(); means: what apply() is given.
  virtual bool has_density() const { return false; }
  virtual void log_probability(const Exploration& /*exploration*/, std::span<const float> /*means*/,
                               std::span<const float> /*actions*/,
                               std::span<double> /*out*/) const {}

  /// As Policy::save_exploration() and load_exploration().
  virtual void save_state(std::vector<std::byte>& /*out*/) const {}
  virtual std::span<const std::byte> load_state(std::span<const std::byte> in) { return in; }
};

/// Throws std::invalid_argument on an unknown kind.
std::unique_ptr<ActionNoise> make_action_noise(const ActionNoiseConfig& config, const Mlp& network);

} // namespace troupe::learner
