#include "learner/agents/td3/td3.hpp"

#include <torch/types.h>

#include "learner/agents/learners/state_actor_critic.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/td3/td3.pb.h"

namespace troupe::learner {
namespace {

class Td3Policy : public DeterministicPolicy {
public:
  Td3Policy(const Td3Config& config, const replay::TransitionSpec& transitions)
      : DeterministicPolicy("td3", transitions,
                            Mlp(learner::state_size(transitions, "td3"),
                                relu_layers(config.policy_layers, transitions.action_size,
                                            config.blocks.policy_blocks)),
                            nullptr, config.noise, config.blocks.normalise_observations) {}
};

class Td3 : public StateActorCritic<Td3Config> {
public:
  Td3(const Td3Config& config, const replay::TransitionSpec& transitions)
      : StateActorCritic(config, "td3", transitions, transitions.action_size, true) {
    save_counter("steps", steps_);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;

private:
  at::Tensor next_action(const at::Tensor& next_state);
  void learn(const Transitions& batch, bool policy);
  void learn_policy(const at::Tensor& state, const at::Tensor& taken);

  std::vector<LayerTensors> targets_; // of the policy's target network
  Tape target_tape_;
  std::int64_t steps_ = 0; // of this replica
};

void Td3::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  build_networks(context);
  targets_ = network_.bind(policy_.layout(), policy_.target(), policy_.target_half());
}

/// The target policy's action with clipped noise.
at::Tensor Td3::next_action(const at::Tensor& next_state) {
  at::Tensor action = tanh_of(network_.forward(targets_, next_state, {}, target_tape_, workspace_));
  if (config_.target_noise == 0)
    return action;
  return action
      .add_((in_update().normal(action.sizes()) * config_.target_noise)
                .clamp_(-config_.target_noise_clip, config_.target_noise_clip))
      .clamp_(-1, 1);
}

/// Maximises the value of the policy's actions. With imitation (TD3+BC), the values are scaled
/// to units of their mean size, and the loss includes the squared distance to replay's actions.
void Td3::learn_policy(const at::Tensor& state, const at::Tensor& taken) {
  const auto policy = span("policy");
  const at::Tensor action = tanh_of(network_.forward(parameters_, state, {}, tape_, workspace_));
  const TwinCritic::Value value = critic_.value(state, action, false);
  at::Tensor gradient = -value.action_gradient;
  at::Tensor loss = -value.mean;
  if (config_.imitation > 0) {
    const at::Tensor scale = config_.imitation / value.values.abs().mean().clamp_min(1e-8);
    const at::Tensor distance = action - taken;
    gradient = gradient * scale + distance * (2.0 / static_cast<double>(distance.numel()));
    loss = loss * scale + distance.square().mean();
  }
  at::tanh_backward_out(tape_.gradient(), gradient, action);
  network_.backward(parameters_, gradients_, tape_, false, workspace_);
  in_update().step(policy_, "policy_loss", loss);
  in_update().tell("policy_loss", loss);
  in_update().tell("q_mean", value.mean);
}

void Td3::learn(const Transitions& batch, bool policy) {
  auto targets = span("targets");
  const at::Tensor value = critic_.target_value(batch.next_state, next_action(batch.next_state));
  targets.end();
  learn_critic(batch, value, 1);
  if (policy)
    learn_policy(batch.state, batch.action);
}

Metrics Td3::step_fn(ReplicaContext& context, const TensorMap& batch) {
  const WithoutAutograd without;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  const bool policy = ++steps_ % config_.policy_period == 0;
  Metrics metrics = make_update(used, policy ? 1 : 0, [&](const TensorMap& on_device) {
    learn(take(context, on_device), policy);
  });
  const std::int64_t times = finish_update(critic_.group(), metrics, config_.policy_period);
  critic_.group().average_target(config_.target_update, times);
  policy_.average_target(config_.target_update, times);
  for (const char* of_policy : {"policy_loss", "q_mean"})
    metrics.try_emplace(of_policy, 0); // before the policy's first update
  return metrics;
}

Members members(Td3Config& config) {
  Members all{{"policy_layers", &config.policy_layers},
              {"critic_layers", &config.critic_layers},
              {"policy_learning_rate", &config.policy_learning_rate},
              {"critic_learning_rate", &config.critic_learning_rate},
              {"target_update", &config.target_update},
              {"policy_period", &config.policy_period},
              {"target_noise", &config.target_noise},
              {"target_noise_clip", &config.target_noise_clip},
              {"imitation", &config.imitation},
              {"gradient_norm", &config.gradient_norm},
              {"precision", &config.precision},
              {"batch_size", &config.batch_size}};
  config.blocks.add_members(all);
  config.noise.add_members(all);
  return all;
}

std::vector<OptionProblem> problems(const Td3Config& config, const AgentSetting& setting) {
  return all_problems(
      {config.noise.problems("td3"),
       config.blocks.problems("td3", config.policy_layers, config.critic_layers, setting)});
}

} // namespace

AgentPtr make_td3_agent(const Td3Config& config) {
  return std::make_shared<const ConfiguredAgent<Td3Config, Td3, Td3Policy>>(config);
}

AgentKind td3_agent() {
  return agent_kind<Td3Config>(
      {.name = "td3",
       .help = "twin delayed DDPG (Fujimoto et al. 2018)",
       .metrics = {"critic_loss", "policy_loss", "q_mean", "gradient_norm"},
       .run = {.n_step = 1, .updates_per_step = 1, .publish_period = 1},
       .options = agents::Td3::descriptor()},
      members, problems, make_td3_agent);
}

} // namespace troupe::learner
