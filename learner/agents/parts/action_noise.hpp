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

/// How a policy with deterministic actions explores. The scale has the same meaning for each kind:
/// the standard deviation from the policy's actions, in units of the action range [-1, 1].
struct ActionNoiseConfig {
  /// "gaussian": independent noise at each step. "ornstein_uhlenbeck": noise that is correlated in
  /// time and starts at 0 in each episode. "parameters": each episode is played with a perturbed
  /// copy of the network (Plappert et al. 2018).
  std::string kind = "gaussian";
  NoiseConfig scale{};
  double reversion = 0.15; // ornstein_uhlenbeck: decay towards 0 per agent step

  /// Adds the keys of an agent's block: noise, noise_reversion and those of NoiseConfig.
  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent) const;
};

/// Adds exploration to the actions of a batch of environments. It may keep state for each
/// environment, so a row must always belong to the same environment. Not thread-safe.
class ActionNoise {
public:
  virtual ~ActionNoise() = default;

  /// Sets the policy's parameters. They are not copied, and read when needed.
  virtual void load(const std::vector<LayerTensors>& /*parameters*/) {}
  /// `x` is the network's input [batch, inputs]; `actions` [batch, action size] is the tanh of its
  /// outputs and receives the explored actions. Throws std::runtime_error naming the row of an
  /// action that is not finite.
  virtual void apply(const float* x, const Exploration& exploration, std::span<float> actions) = 0;

  /// See Policy::has_density() and log_probability(). `means` are the actions passed to apply().
  virtual bool has_density() const { return false; }
  virtual void log_probability(const Exploration& /*exploration*/, std::span<const float> /*means*/,
                               std::span<const float> /*actions*/,
                               std::span<double> /*out*/) const {}

  /// See Policy::save_exploration() and load_exploration().
  virtual void save_state(std::vector<std::byte>& /*out*/) const {}
  virtual std::span<const std::byte> load_state(std::span<const std::byte> in) { return in; }
};

/// Throws std::invalid_argument if the kind is unknown.
std::unique_ptr<ActionNoise> make_action_noise(const ActionNoiseConfig& config, const Mlp& network);

} // namespace troupe::learner
