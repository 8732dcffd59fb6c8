#pragma once

#include <utility>

#include "learner/agents/learners/group_replica.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// The replica of an agent that learns the values of choices. The target network is replaced by a
/// copy of the network every `target_period` updates.
class QLearner : public GroupReplica {
public:
  void build(ReplicaContext& context) final;
  /// Metrics: "critic_loss", "q_mean", "gradient_norm".
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) final;

protected:
  QLearner(Setting setting, int target_period, ParameterLayout layout)
      : GroupReplica(std::move(setting), std::move(layout)), target_period_(target_period) {}

  /// Returns the tensors of the batch that the update uses. Throws std::runtime_error naming an
  /// invalid one.
  virtual TensorMap checked(const TensorMap& batch) const = 0;
  struct Learnt {          // detached from the graph
    at::Tensor loss;       // []
    at::Tensor q_mean;     // []
    at::Tensor priorities; // [batch]
  };
  /// Adds the gradient of the loss to the group's gradient, which is 0 before the call.
  virtual Learnt backward(const TensorMap& batch) = 0;

  const Leaves& targets() const { return targets_; }

private:
  int target_period_;
  Leaves targets_;
};

/// A QLearner whose values come from a network made from the agent's configuration.
template <class Config, class Network>
class NetworkQLearner : public QLearner {
public:
  NetworkQLearner(const Config& config, const replay::TransitionSpec& transitions)
      : NetworkQLearner(config, transitions, Network(config, transitions)) {}

protected:
  const Config config_;
  const replay::TransitionSpec transitions_;
  const Network network_;

private:
  NetworkQLearner(const Config& config, const replay::TransitionSpec& transitions, Network network)
      : QLearner({.learning_rate = config.learning_rate,
                  .gradient_norm = config.gradient_norm,
                  .precision = config.precision,
                  .target = true,
                  .adam_epsilon = config.adam_epsilon},
                 config.target_period, network.layout()),
        config_(config),
        transitions_(transitions),
        network_(std::move(network)) {}

  at::Tensor initial(at::Generator& generator) const final { return network_.initial(generator); }
};

} // namespace troupe::learner
