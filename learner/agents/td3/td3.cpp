#include "learner/agents/td3/td3.hpp"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/learners/twin_critic.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/state_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/td3/td3.pb.h"
#include "learner/nn/kernels/normal.hpp"

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

class Td3 : public SavedReplica {
public:
  Td3(const Td3Config& config, const replay::TransitionSpec& transitions)
      : config_(config),
        transitions_(transitions),
        critic_(state_size(transitions, "td3"), transitions.action_size, config.critic_layers, {},
                config.blocks.critic_blocks),
        network_(state_size(transitions, "td3"),
                 relu_layers(config.policy_layers, transitions.action_size,
                             config.blocks.policy_blocks)) {
    if (config.blocks.normalise_observations)
      normalise_states(state_size(transitions, "td3"));
    ParameterLayout layout;
    network_.declare(layout, "policy");
    policy_.declare(std::move(layout));
    save_group("critic_", critic_.group(), true);
    save_group("policy_", policy_, true);
    save_counter("steps", steps_);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  at::Tensor priorities() override { return priorities_; }
  at::Tensor policy_parameters() override { return published(policy_); }

private:
  at::Tensor next_action(const at::Tensor& next_state);
  double learn_policy(const at::Tensor& state, const at::Tensor& taken);

  Td3Config config_;
  replay::TransitionSpec transitions_;
  TwinCritic critic_;
  Mlp network_;
  ParameterGroup policy_;
  std::vector<LayerTensors> parameters_, gradients_, targets_;
  Tape tape_, target_tape_;
  Workspace workspace_;
  at::Tensor priorities_;
  std::int64_t steps_ = 0;              // of this replica
  double policy_loss_ = 0, q_mean_ = 0; // of the last update of the policy
};

void Td3::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  critic_.build(context, options(), generator, config_.critic_learning_rate, config_.gradient_norm,
                config_.blocks.weight_decay);
  const at::Tensor flat = at::zeros({policy_.layout().count()}, options().device(at::kCPU));
  network_.initialise(policy_.layout(), flat, Mlp::Weights::uniform, generator);
  policy_.build(context, flat.to(options().device()), config_.policy_learning_rate,
                config_.gradient_norm, config_.blocks.weight_decay);
  parameters_ = network_.bind(policy_.layout(), policy_.flat());
  gradients_ = network_.bind(policy_.layout(), policy_.gradient());
  targets_ = network_.bind(policy_.layout(), policy_.target());
}

/// The target policy's, smoothed by clipped noise.
at::Tensor Td3::next_action(const at::Tensor& next_state) {
  at::Tensor action =
      at::tanh(network_.forward(targets_, next_state, {}, target_tape_, workspace_));
  if (config_.target_noise == 0)
    return action;
  const at::Tensor noise = normal(random(), action.sizes()).to(options());
  return action
      .add_((noise * config_.target_noise)
                .clamp_(-config_.target_noise_clip, config_.target_noise_clip))
      .clamp_(-1, 1);
}

/// Minimises the negative value of its actions; with imitation the values count in units of their
/// size, and the squared distance to the actions of replay is added (TD3+BC).
double Td3::learn_policy(const at::Tensor& state, const at::Tensor& taken) {
  const at::Tensor action = at::tanh(network_.forward(parameters_, state, {}, tape_, workspace_));
  const TwinCritic::Value value = critic_.value(state, action, false);
  at::Tensor gradient = -value.action_gradient;
  double loss = -value.mean;
  if (config_.imitation > 0) {
    const double size = std::max(value.values.abs().mean().item<double>(), 1e-8);
    const double scale = config_.imitation / size;
    const at::Tensor distance = action - taken;
    gradient = gradient * scale + distance * (2.0 / static_cast<double>(distance.numel()));
    loss = loss * scale + distance.square().mean().item<double>();
  }
  tape_.gradient().copy_((1 - action * action) * gradient);
  network_.backward(parameters_, gradients_, tape_, false, workspace_);
  policy_.step("policy_loss", loss, updates() + 1);
  q_mean_ = value.mean;
  return loss;
}

Metrics Td3::step_fn(ReplicaContext& context, const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  const auto [state, next_state] = states(context, used);
  const at::Tensor weight =
      used.contains("weight") ? used.at("weight").to(options()) : at::Tensor();
  const at::Tensor target = used.at("reward").to(options())
                            + used.at("discount").to(options())
                                  * critic_.target_value(next_state, next_action(next_state));
  const double loss =
      critic_.learn(state, used.at("action").to(options()), target, weight, 1, updates() + 1);
  priorities_ = weight.defined() ? critic_.errors().to(at::kCPU, at::kDouble) : at::Tensor();
  const double gradient_norm = critic_.group().optimizer().gradient_norm();
  const std::int64_t applied = critic_.group().optimizer().updates_applied();
  if (++steps_ % config_.policy_period == 0)
    policy_loss_ = learn_policy(state, used.at("action").to(options()));
  const std::int64_t before = updates() / config_.policy_period;
  count_updates(applied);
  const std::int64_t times = updates() / config_.policy_period - before;
  critic_.group().average_target(config_.target_update, times);
  policy_.average_target(config_.target_update, times);
  return {{"critic_loss", loss},
          {"policy_loss", policy_loss_},
          {"q_mean", q_mean_},
          {"gradient_norm", gradient_norm}};
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
  auto found = refuse_pixels(config, setting);
  for (OptionProblem& problem : config.noise.problems("td3"))
    found.push_back(std::move(problem));
  for (OptionProblem& problem :
       config.blocks.problems("td3", config.policy_layers, config.critic_layers, setting))
    found.push_back(std::move(problem));
  return found;
}

} // namespace

AgentPtr make_td3_agent(const Td3Config& config) {
  return std::make_shared<const ConfiguredAgent<Td3Config, Td3, Td3Policy>>(config);
}

AgentKind td3_agent() {
  return agent_kind<Td3Config>(
      {.name = "td3",
       .help = "twin delayed DDPG (Fujimoto et al. 2018): continuous actions",
       .metrics = {"critic_loss", "policy_loss", "q_mean", "gradient_norm"},
       .options = agents::Td3::descriptor()},
      members, problems, make_td3_agent);
}

} // namespace troupe::learner
