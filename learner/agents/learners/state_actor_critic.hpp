#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/learners/twin_critic.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// The replica of an agent that learns twin critics and a policy from states, with separate
/// optimizers. `Config` is the agent's configuration, with layers, blocks and learning rates of
/// both.
template <class Config>
class StateActorCritic : public SavedReplica {
public:
  at::Tensor policy_parameters() final { return published(policy_.flat()); }
  at::Tensor action_values(const TensorMap& batch) final {
    at::NoGradGuard no_gradient;
    return critic_.smaller_value(state_of(batch), batch.at("action").to(options()));
  }

protected:
  /// `outputs`: number of outputs of the policy network. `policy_target`: the policy has a target
  /// network, too.
  StateActorCritic(const Config& config, const std::string& agent,
                   const replay::TransitionSpec& transitions, std::int64_t outputs,
                   bool policy_target)
      : config_(config),
        transitions_(transitions),
        critic_(state_size(transitions, agent), transitions.action_size, config.critic_layers, {},
                config.blocks.critic_blocks),
        network_(state_size(transitions, agent),
                 relu_layers(config.policy_layers, outputs, config.blocks.policy_blocks)) {
    if (config.blocks.normalise_observations)
      normalise_states(state_size(transitions, agent));
    ParameterLayout layout;
    network_.declare(layout, "policy");
    policy_.declare(std::move(layout));
    save_group("critic_", critic_.group(), true);
    save_group("policy_", policy_, policy_target, transitions.action_size);
  }

  void build_networks(ReplicaContext& context) {
    begin(context, config_.precision);
    at::Generator generator = at::detail::createCPUGenerator(context.seed());
    critic_.build(context, options(), generator,
                  {.learning_rate = config_.critic_learning_rate,
                   .gradient_norm = config_.gradient_norm,
                   .weight_decay = config_.blocks.weight_decay,
                   .rounding = rounding()});
    const at::Tensor flat = at::zeros({policy_.layout().count()}, options().device(at::kCPU));
    network_.initialise(policy_.layout(), flat, Mlp::Weights::uniform, generator);
    policy_.build(context, flat.to(options().device()),
                  {.learning_rate = config_.policy_learning_rate,
                   .gradient_norm = config_.gradient_norm,
                   .weight_decay = config_.blocks.weight_decay,
                   .rounding = rounding()});
    parameters_ = network_.bind(policy_.layout(), policy_.flat(), policy_.half());
    gradients_ = network_.bind(policy_.layout(), policy_.gradient());
  }

  /// A checked batch on the parameters' device.
  struct Transitions {
    at::Tensor state, next_state, action, reward, discount;
    at::Tensor weight; // undefined: all rows count equally
  };
  Transitions take(ReplicaContext& context, const TensorMap& used) {
    const auto of = [&](const char* name) { return used.at(name).to(options()); };
    auto [state, next_state] = states(context, used);
    return {.state = std::move(state),
            .next_state = std::move(next_state),
            .action = of("action"),
            .reward = of("reward"),
            .discount = of("discount"),
            .weight = used.contains("weight") ? of("weight") : at::Tensor()};
  }

  /// Trains the critics towards reward + discount * `next_value`.
  void learn_critic(const Transitions& batch, const at::Tensor& next_value, double scale) {
    const auto critic = span("critic");
    critic_.learn(in_update(), batch.state, batch.action,
                  batch.reward + batch.discount * next_value, batch.weight, scale);
    if (batch.weight.defined())
      in_update().tell_rows(critic_.errors());
  }

  const Config config_;
  const replay::TransitionSpec transitions_;
  TwinCritic critic_;
  Mlp network_;
  ParameterGroup policy_;
  std::vector<LayerTensors> parameters_, gradients_; // of the policy
  Tape tape_;
  Workspace workspace_;
};

} // namespace troupe::learner
