#include "learner/agents/sac/sac.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <torch/types.h>

#include "learner/acting/action_density.hpp"
#include "learner/agents/learners/state_actor_critic.hpp"
#include "learner/agents/learners/temperature.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/sac/sac.pb.h"
#include "learner/agents/sac/spherical_sac.hpp"
#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/squashed_gaussian.hpp"

namespace troupe::learner {
namespace {

/// Acts with the mean, and explores by sampling.
class SacPolicy : public MlpPolicy {
public:
  SacPolicy(const SacConfig& config, const replay::TransitionSpec& transitions)
      : MlpPolicy("sac", transitions,
                  Mlp(learner::state_size(transitions, "sac"),
                      relu_layers(config.policy_layers, 2 * std::int64_t{transitions.action_size},
                                  config.blocks.policy_blocks)),
                  nullptr, config.blocks.normalise_observations) {}

  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override {
    const float* raw = outputs(observations, actions);
    const auto size = static_cast<std::size_t>(action_size());
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = raw[i / size * 2 * size + i % size];
    kernel_table().tanh(actions.data(), actions.data(), static_cast<std::int64_t>(actions.size()));
  }

  std::optional<PolicyGraph> graph() const override { return tanh_graph(); }

  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    const float* raw = outputs(observations, actions);
    const auto size = static_cast<std::size_t>(action_size());
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const float* row = raw + i / size * 2 * size;
      const double deviation = std::exp(std::clamp<double>(row[size + i % size], -20, 2));
      actions[i] = static_cast<float>(
          std::tanh(row[i % size] + deviation * exploration.random[i / size]->normal()));
    }
  }

  bool has_density() const override { return true; }
  void log_probability(const Observations& observations, const Exploration&,
                       std::span<const float> actions, std::span<double> out) override {
    const float* raw = outputs(observations, actions);
    const auto size = static_cast<std::size_t>(action_size());
    std::ranges::fill(out, 0);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const float* row = raw + i / size * 2 * size;
      const double deviation = std::exp(std::clamp<double>(row[size + i % size], -20, 2));
      out[i / size] += log_squashed_normal(row[i % size], deviation, actions[i]);
    }
  }
};

class Sac : public StateActorCritic<SacConfig> {
public:
  Sac(const SacConfig& config, const replay::TransitionSpec& transitions)
      : StateActorCritic(config, "sac", transitions, 2 * std::int64_t{transitions.action_size},
                         false),
        temperature_(config.temperature, config.temperature_learning_rate,
                     config.target_entropy * transitions.action_size) {
    save_group("temperature_", temperature_.group(), false);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;

private:
  void learn(const Transitions& batch);

  Temperature temperature_;
};

void Sac::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  build_networks(context);
  temperature_.build(context, options());
}

void Sac::learn(const Transitions& batch) {
  AgentUpdate& update = in_update();
  const std::int64_t rows = batch.state.size(0);
  const std::array<std::int64_t, 2> sizes{rows, transitions_.action_size};
  const at::Tensor temperature = temperature_.value();
  update.tell("temperature", temperature);

  auto targets = span("targets");
  const auto next = squashed_sample(
      network_.forward(parameters_, batch.next_state, {}, tape_, workspace_), update.normal(sizes));
  const at::Tensor value =
      critic_.target_value(batch.next_state, next.action) - temperature * next.log_probability;
  targets.end();
  learn_critic(batch, value, 0.5);

  const auto policy = span("policy");
  const at::Tensor& raw = network_.forward(parameters_, batch.state, {}, tape_, workspace_);
  const at::Tensor draw = update.normal(sizes);
  const auto now = squashed_sample(raw, draw);
  const TwinCritic::Value q = critic_.value(batch.state, now.action, true);
  const at::Tensor entropy = -now.log_probability.mean();
  tape_.gradient().copy_(squashed_gradient(raw, draw, now.action, q.action_gradient, temperature,
                                           1.0 / static_cast<double>(rows)));
  network_.backward(parameters_, gradients_, tape_, false, workspace_);
  const at::Tensor loss = -temperature * entropy - q.mean;
  update.step(policy_, "policy_loss", loss);
  temperature_.learn(update, entropy);
  update.tell("policy_loss", loss);
  update.tell("q_mean", q.mean);
  update.tell("entropy", entropy);
}

Metrics Sac::step_fn(ReplicaContext& context, const TensorMap& batch) {
  const WithoutAutograd without;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  Metrics metrics =
      make_update(used, 0, [&](const TensorMap& on_device) { learn(take(context, on_device)); });
  critic_.group().average_target(config_.target_update, finish_update(critic_.group(), metrics));
  return metrics;
}

Members members(SacConfig& config) {
  Members all{{"policy_layers", &config.policy_layers},
              {"critic_layers", &config.critic_layers},
              {"policy_learning_rate", &config.policy_learning_rate},
              {"critic_learning_rate", &config.critic_learning_rate},
              {"temperature_learning_rate", &config.temperature_learning_rate},
              {"temperature", &config.temperature},
              {"target_entropy", &config.target_entropy},
              {"target_update", &config.target_update},
              {"gradient_norm", &config.gradient_norm},
              {"precision", &config.precision},
              {"spherical", &config.spherical},
              {"critics", &config.critics},
              {"atoms", &config.atoms},
              {"batch_size", &config.batch_size}};
  config.blocks.add_members(all);
  return all;
}

std::vector<OptionProblem> spherical_problems(const SacConfig& config) {
  std::vector<OptionProblem> found;
  if (!config.spherical)
    return found;
  for (const auto& [key, blocks] : {std::pair{"policy_blocks", config.blocks.policy_blocks},
                                    std::pair{"critic_blocks", config.blocks.critic_blocks}})
    if (blocks < 1)
      found.push_back({key, "is 0, but with sac.spherical the networks are made of blocks; it must "
                            "be at least 1: SimbaV2 has 1 for the policy and 2 for the critic"});
  if (config.blocks.weight_decay > 0)
    found.push_back({"weight_decay", "is above 0, but with sac.spherical each update scales the "
                                     "weights back to length 1; leave it out"});
  return found;
}

std::vector<OptionProblem> problems(const SacConfig& config, const AgentSetting& setting) {
  return all_problems(
      {spherical_problems(config),
       config.blocks.problems("sac", config.policy_layers, config.critic_layers, setting)});
}

} // namespace

Storage storage_of(const SacConfig& config) {
  return {.running_return = config.spherical};
}

AgentPtr make_sac_agent(const SacConfig& config) {
  if (config.spherical)
    return make_spherical_sac_agent(config);
  return std::make_shared<const ConfiguredAgent<SacConfig, Sac, SacPolicy>>(config);
}

AgentKind sac_agent() {
  return agent_kind<SacConfig>({.name = "sac",
                                .help = "soft actor-critic with automatic temperature (Haarnoja et "
                                        "al. 2018)",
                                .metrics = {"critic_loss", "policy_loss", "q_mean", "entropy",
                                            "temperature", "gradient_norm"},
                                .run = {.n_step = 1, .updates_per_step = 1, .publish_period = 1},
                                .options = agents::Sac::descriptor()},
                               members, problems, make_sac_agent);
}

} // namespace troupe::learner
