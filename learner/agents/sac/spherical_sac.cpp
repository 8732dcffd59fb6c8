#include "learner/agents/sac/spherical_sac.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/learners/temperature.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/spherical/return_scale.hpp"
#include "learner/agents/spherical/spherical_critic.hpp"
#include "learner/agents/spherical/spherical_policy.hpp"
#include "learner/nn/squashed_gaussian.hpp"

namespace troupe::learner {
namespace {

constexpr double kValueLimit = 5; // bound of the critics' atoms

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
    if (!transitions.running_return)
      throw std::invalid_argument(
          "sac: the transitions have no running return; make them with stored_by()");
    if (config.blocks.normalise_observations)
      normalise_states(state_size(transitions, "sac"));
    ParameterLayout layout;
    network_.declare(layout, "policy");
    policy_.declare(std::move(layout));
    save_group("critic_", critic_.group(), true);
    save_group("policy_", policy_, false, transitions.action_size);
    save_group("temperature_", temperature_.group(), false);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  TensorMap parameters() override {
    TensorMap out = SavedReplica::parameters();
    scale_.show(out);
    return out;
  }
  at::Tensor policy_parameters() override { return published(policy_.flat()); }
  at::Tensor action_values(const TensorMap& batch) override {
    at::NoGradGuard no_gradient;
    return critic_.smaller_value(state_of(batch), batch.at("action").to(options()))
           * scale_.value();
  }

private:
  SquashedSample sample(const at::Tensor& state, const at::Tensor& draw) {
    raw_ = network_.forward(parameters_, state, trace_, workspace_);
    gaussian_ = squashed_deviations(raw_);
    return squashed_sample(gaussian_, draw);
  }
  at::Tensor noise(std::int64_t rows) {
    return in_update().normal({rows, std::int64_t{transitions_.action_size}});
  }
  void learn(ReplicaContext& context, const TensorMap& batch);
  void learn_critic(const TensorMap& batch, const at::Tensor& state, const at::Tensor& next,
                    const at::Tensor& scale, const at::Tensor& temperature);
  void learn_policy(const at::Tensor& state, const at::Tensor& scale,
                    const at::Tensor& temperature);

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
  at::Tensor raw_, gaussian_; // in the last sample()
};

void SphericalSac::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  scale_.build();
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  const bool rounds = options().device().is_cpu() && multiplies_rounded();
  Training training{.learning_rate = config_.critic_learning_rate,
                    .gradient_norm = config_.gradient_norm,
                    .rounding = rounds ? rounding() : Rounding::none};
  critic_.build(context, options(), generator, training);
  const at::Tensor flat = at::zeros({policy_.layout().count()}, options().device(at::kCPU));
  network_.initialise(policy_.layout(), flat, generator);
  training.learning_rate = config_.policy_learning_rate;
  policy_.build(context, flat.to(options().device()), training);
  temperature_.build(context, options());
  parameters_ = network_.bind(policy_.layout(), policy_.flat(), policy_.half());
  gradients_ = network_.bind(policy_.layout(), policy_.gradient());
}

/// Trains the critics towards reward + discount * (value - temperature * log-probability), in units
/// of the scale.
void SphericalSac::learn_critic(const TensorMap& batch, const at::Tensor& state,
                                const at::Tensor& next, const at::Tensor& scale,
                                const at::Tensor& temperature) {
  const auto of = [&](const char* name) { return batch.at(name).to(options()); };
  const bool weighted = batch.contains("weight");
  auto targets = span("targets");
  const SquashedSample sampled = sample(next, noise(next.size(0)));
  const at::Tensor discount = of("discount");
  const at::Tensor reward = of("reward") / scale - discount * temperature * sampled.log_probability;
  const at::Tensor logits = critic_.target_logits(next, sampled.action);
  targets.end();
  const auto critic = span("critic");
  critic_.learn(in_update(), state, of("action"), {logits, reward, discount},
                weighted ? of("weight") : at::Tensor());
  if (weighted)
    in_update().tell_rows(critic_.row_losses());
}

void SphericalSac::learn_policy(const at::Tensor& state, const at::Tensor& scale,
                                const at::Tensor& temperature) {
  const auto policy = span("policy");
  AgentUpdate& update = in_update();
  const at::Tensor draw = noise(state.size(0));
  const SquashedSample sampled = sample(state, draw);
  const SphericalCritic::Value q = critic_.value(state, sampled.action);
  const at::Tensor entropy = -sampled.log_probability.mean();
  at::Tensor gradient = squashed_gradient(gaussian_, draw, sampled.action, q.action_gradient,
                                          temperature, 1.0 / static_cast<double>(state.size(0)));
  squashed_deviations_backward(raw_, gradient);
  network_.backward(parameters_, &gradients_, trace_, gradient, workspace_);
  const at::Tensor loss = -temperature * entropy - q.mean;
  update.step(policy_, "policy_loss", loss);
  SphericalNetwork::project(parameters_);
  policy_.refresh_halves();
  temperature_.learn(update, entropy);
  update.tell("policy_loss", loss);
  update.tell("q_mean", q.mean * scale);
  update.tell("entropy", entropy);
}

void SphericalSac::learn(ReplicaContext& context, const TensorMap& batch) {
  const auto [state, next_state] = states(context, batch);
  const at::Tensor scale = in_update().number([this] { return scale_.value(); });
  const at::Tensor temperature = temperature_.value();
  in_update().tell("temperature", temperature);
  learn_critic(batch, state, next_state, scale, temperature);
  learn_policy(state, scale, temperature);
}

Metrics SphericalSac::step_fn(ReplicaContext& context, const TensorMap& batch) {
  const WithoutAutograd without;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  scale_.observe(context, used.at("running_return"));
  Metrics metrics =
      make_update(used, 0, [&](const TensorMap& on_device) { learn(context, on_device); });
  critic_.group().average_target(config_.target_update, finish_update(critic_.group(), metrics));
  return metrics;
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
