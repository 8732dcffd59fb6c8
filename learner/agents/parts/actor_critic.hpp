#pragma once

#include <optional>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/action_head.hpp"
#include "learner/agents/parts/lstm.hpp"
#include "learner/agents/parts/network_policy.hpp"

namespace troupe::learner {

/// The extra of a step, float32: the logarithm of the probability (or density) with which its
/// action was drawn, before it was clipped.
inline constexpr const char* kLogProbability = "log_probability";

/// A stochastic policy and a value. From pixels, and with a memory, both share the torso; from
/// states alone each has its own.
class ActorCritic {
public:
  /// lstm: cells of the memory behind the torso; 0: none. Throws std::invalid_argument naming
  /// `agent` on observations and actions of another kind.
  ActorCritic(const std::string& agent, const replay::TransitionSpec& transitions,
              const std::string& encoder, const std::vector<std::int64_t>& layers,
              std::int64_t lstm);

  const ParameterLayout& layout() const { return layout_; }
  const ActionHead& actions() const { return actions_; }
  bool is_recurrent() const { return state_size() > 0; }
  std::int64_t state_size() const { return lstm_.state_size(); }

  /// Orthogonal layers, a policy that is nearly uniform or has mean 0; float32 on the CPU.
  at::Tensor initial(at::Generator& generator) const;

  /// Of a recurrent network: what it remembers before sequences [batch, steps] of observations.
  struct Memory {
    at::Tensor state; // [batch, state size]
    at::Tensor first; // [batch, steps], as Lstm::forward() takes it
  };
  struct Output {
    at::Tensor head;  // [rows, outputs] of actions()
    at::Tensor value; // [rows]
  };
  /// observation: [rows, …]; with a memory the rows are sequences, one behind the other.
  Output forward(const Leaves& leaves, const Observed& observation, const Memory& memory) const;
  /// The head alone, of one step each; a recurrent network's `state` [rows, state size] is
  /// replaced.
  at::Tensor head(const Leaves& leaves, const Observed& observation, at::Tensor& state) const;

  /// The layers of head() and the best actions.
  PolicyGraph describe(const Leaves& leaves, const replay::TransitionSpec& transitions) const;

  /// [batch] of actions [batch, action size].
  at::Tensor log_probability(const Leaves& leaves, const at::Tensor& head,
                             const at::Tensor& action) const;
  at::Tensor entropy(const Leaves& leaves, const at::Tensor& head) const;
  /// The logarithms, for actions(); undefined if no number is continuous.
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

/// What rollouts for such an agent hold: what its policy writes.
std::vector<env::ArraySpec> rollout_extras(std::int64_t lstm);

/// Samples actions and writes the extra kLogProbability and, if it is recurrent, kMemory; the mode
/// where it does not explore.
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
