#pragma once

#include <optional>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/action_head.hpp"
#include "learner/agents/parts/lstm.hpp"
#include "learner/agents/parts/network_policy.hpp"

namespace troupe::learner {

/// The extra that contains the log-probability (or log density) with which a step's action was
/// drawn, before it was clipped; float32.
inline constexpr const char* kLogProbability = "log_probability";

/// A network with a stochastic policy and a value. From pixels, or with a memory, policy and value
/// share the torso; from states without a memory they have separate ones.
class ActorCritic {
public:
  /// `lstm`: number of LSTM cells after the torso; 0: no memory. Throws std::invalid_argument
  /// naming `agent` if observations or actions are of an unsupported kind.
  ActorCritic(const std::string& agent, const replay::TransitionSpec& transitions,
              const std::string& encoder, const std::vector<std::int64_t>& layers,
              std::int64_t lstm);

  const ParameterLayout& layout() const { return layout_; }
  const ActionHead& actions() const { return actions_; }
  bool is_recurrent() const { return state_size() > 0; }
  std::int64_t state_size() const { return lstm_.state_size(); }

  /// Initial parameters, float32 on the CPU. Layers are orthogonal, and the policy is almost
  /// uniform or has mean 0.
  at::Tensor initial(at::Generator& generator) const;

  /// The state of a recurrent network before sequences [batch, steps] of observations.
  struct Memory {
    at::Tensor state; // [batch, state size]
    at::Tensor first; // [batch, steps], see Lstm::forward()
  };
  struct Output {
    at::Tensor head;  // [rows, outputs], see actions()
    at::Tensor value; // [rows]
  };
  /// observation: [rows, …]. With a memory, the rows are consecutive sequences.
  Output forward(const Leaves& leaves, const Observed& observation, const Memory& memory) const;
  /// Computes only the head, for one step in each row. Replaces `state` [rows, state size] of a
  /// recurrent network.
  at::Tensor head(const Leaves& leaves, const Observed& observation, at::Tensor& state) const;

  /// Describes the layers of head() and the choice of the best actions.
  PolicyGraph describe(const Leaves& leaves, const replay::TransitionSpec& transitions) const;

  /// Log-probabilities [batch] of actions [batch, action size].
  at::Tensor log_probability(const Leaves& leaves, const at::Tensor& head,
                             const at::Tensor& action) const;
  at::Tensor entropy(const Leaves& leaves, const at::Tensor& head) const;
  /// The logarithms of the standard deviations, for actions(). Undefined if the action has no
  /// continuous components.
  at::Tensor deviations(const Leaves& leaves) const {
    return actions_.continuous() > 0 ? leaves[deviation_] : at::Tensor();
  }

private:
  ParameterLayout layout_;
  ActionHead actions_;
  Torso torso_;
  std::optional<Torso> value_torso_;
  Lstm lstm_;
  Linear head_;
  Linear value_;
  std::size_t deviation_ = 0;
};

/// The extras of rollouts, which the policy of such an agent writes.
std::vector<env::ArraySpec> rollout_extras(std::int64_t lstm);

/// act() plays the mode of the distribution. explore() samples actions and writes the extras
/// kLogProbability and, for recurrent networks, kMemory.
class ActorCriticPolicy : public NetworkPolicy<ActorCritic> {
public:
  using NetworkPolicy::NetworkPolicy;

  std::int64_t state_size() const override { return network().state_size(); }
  void act(const Observations& observations, std::span<float> actions) override;
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override;
  bool has_density() const override { return true; }
  void log_probability(const Observations& observations, const Exploration& exploration,
                       std::span<const float> actions, std::span<double> out) override;

private:
  at::Tensor head_of(const Observations& observations, std::span<const float> actions);
};

} // namespace troupe::learner
