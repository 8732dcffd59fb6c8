#include "learner/agents/sac/spherical_sac.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/learners/temperature.hpp"
#include "learner/agents/parts/state_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/spherical/return_scale.hpp"
#include "learner/agents/spherical/spherical_critic.hpp"
#include "learner/agents/spherical/spherical_policy.hpp"
#include "learner/nn/kernels/normal.hpp"
#include "learner/nn/squashed_gaussian.hpp"

namespace troupe::learner {
namespace {

constexpr double kValueLimit = 5; // of the critics' atoms

SphericalPolicyShape shape_of(const SacConfig& config) {
  return {"sac", config.policy_layers.at(0), config.blocks.policy_blocks,
          config.blocks.normalise_observations};
}

class SphericalSac : public SavedReplica {
public:
  SphericalSac(const SacConfig& config, const replay::TransitionSpec& transitions)
      : config_(config),
        transitions_(transitions),
        critic_({.states = state_size(transitions, "sac"),
                 .actions = transitions.action_size,
                 .width = config.critic_layers.at(0),
                 .blocks = config.blocks.critic_blocks,
                 .critics = config.critics,
                 .support = {config.atoms, -kValueLimit, kValueLimit}}),
        network_(shape_of(config).network(transitions)),
        scale_(kValueLimit),
        temperature_(config.temperature, config.temperature_learning_rate,
                     config.target_entropy * transitions.action_size) {
    if (config.blocks.normalise_observations)
      normalise_states(state_size(transitions, "sac"));
    ParameterLayout layout;
    network_.declare(layout, "policy");
    policy_.declare(std::move(layout));
    save_group("critic_", critic_.group(), true);
    save_group("policy_", policy_, false);
    save_group("temperature_", temperature_.group(), false);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  TensorMap parameters() override {
    TensorMap out = SavedReplica::parameters();
    out["return_scale"] = scale_.tensor();
    return out;
  }
  at::Tensor priorities() override { return priorities_; }
  at::Tensor policy_parameters() override { return published(policy_); }

private:
  SquashedSample sample(const at::Tensor& state, const at::Tensor& draw) {
    raw_ = network_.forward(parameters_, state, trace_, workspace_);
    gaussian_ = squashed_deviations(raw_);
    return squashed_sample(gaussian_, draw);
  }
  at::Tensor noise(std::int64_t rows) {
    return normal(random(), {rows, transitions_.action_size}).to(options());
  }
  double learn_critic(const TensorMap& used, const at::Tensor& state, const at::Tensor& next,
                      double temperature);
  std::pair<double, double> learn_policy(const at::Tensor& state, double temperature);

  SacConfig config_;
  replay::TransitionSpec transitions_;
  SphericalCritic critic_;
  SphericalNetwork network_;
  ReturnScale scale_;
  ParameterGroup policy_;
  Temperature temperature_;
  SphericalNetwork::Tensors parameters_, gradients_;
  SphericalNetwork::Trace trace_;
  Workspace workspace_;
  at::Tensor raw_, gaussian_, priorities_; // the first two of the last sample()
};

void SphericalSac::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  scale_.build();
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  critic_.build(context, options(), generator, config_.critic_learning_rate, config_.gradient_norm);
  const at::Tensor flat = at::zeros({policy_.layout().count()}, options().device(at::kCPU));
  network_.initialise(policy_.layout(), flat, generator);
  policy_.build(context, flat.to(options().device()), config_.policy_learning_rate,
                config_.gradient_norm);
  temperature_.build(context, options());
  parameters_ = network_.bind(policy_.layout(), policy_.flat());
  gradients_ = network_.bind(policy_.layout(), policy_.gradient());
}

/// Towards reward + discount * (value - temperature * log probability), in units of the scale.
double SphericalSac::learn_critic(const TensorMap& used, const at::Tensor& state,
                                  const at::Tensor& next, double temperature) {
  const at::Tensor weight =
      used.contains("weight") ? used.at("weight").to(options()) : at::Tensor();
  const at::Tensor discount = used.at("discount").to(options());
  auto targets = span("targets");
  const SquashedSample sampled = sample(next, noise(next.size(0)));
  const at::Tensor reward = used.at("reward").to(options()) / scale_.value()
                            - discount * temperature * sampled.log_probability;
  const at::Tensor logits = critic_.target_logits(next, sampled.action);
  targets.end();
  const auto critic = span("critic");
  const double loss = critic_.learn(state, used.at("action").to(options()),
                                    {logits, reward, discount}, weight, updates() + 1);
  priorities_ = weight.defined() ? critic_.row_losses().to(at::kCPU, at::kDouble) : at::Tensor();
  return loss;
}

/// Returns the mean value of its actions and its entropy.
std::pair<double, double> SphericalSac::learn_policy(const at::Tensor& state, double temperature) {
  const auto policy = span("policy");
  const at::Tensor draw = noise(state.size(0));
  const SquashedSample sampled = sample(state, draw);
  const SphericalCritic::Value q = critic_.value(state, sampled.action);
  const double entropy = -sampled.log_probability.mean().item<double>();
  at::Tensor gradient = squashed_gradient(gaussian_, draw, sampled.action, q.action_gradient,
                                          temperature, 1.0 / static_cast<double>(state.size(0)));
  squashed_deviations_backward(raw_, gradient);
  network_.backward(parameters_, &gradients_, trace_, gradient, workspace_);
  policy_.step("policy_loss", -temperature * entropy - q.mean, updates() + 1);
  SphericalNetwork::project(parameters_);
  return {q.mean, entropy};
}

Metrics SphericalSac::step_fn(ReplicaContext& context, const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  const auto [state, next_state] = states(context, used);
  scale_.observe(context, used.at("reward"), used.at("discount"));
  const double temperature = temperature_.value();
  const double loss = learn_critic(used, state, next_state, temperature);
  const double gradient_norm = critic_.group().optimizer().gradient_norm();
  const std::int64_t applied = critic_.group().optimizer().updates_applied();
  const auto [q_mean, entropy] = learn_policy(state, temperature);
  temperature_.learn(entropy, updates() + 1);
  count_updates(applied);
  critic_.group().average_target(config_.target_update, applied);
  return {{"critic_loss", loss},
          {"policy_loss", -temperature * entropy - q_mean},
          {"q_mean", q_mean * scale_.value()},
          {"entropy", entropy},
          {"temperature", temperature},
          {"gradient_norm", gradient_norm}};
}

class SphericalSacPolicy : public SphericalPolicy {
public:
  SphericalSacPolicy(const SacConfig& config, const replay::TransitionSpec& transitions)
      : SphericalPolicy(shape_of(config), transitions) {}
};

} // namespace

AgentPtr make_spherical_sac_agent(const SacConfig& config) {
  return std::make_shared<const ConfiguredAgent<SacConfig, SphericalSac, SphericalSacPolicy>>(
      config);
}

} // namespace troupe::learner
