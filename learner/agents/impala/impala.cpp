#include "learner/agents/impala/impala.hpp"

#include <torch/types.h>

#include "learner/agents/impala/impala.pb.h"
#include "learner/agents/parts/advantages.hpp"

namespace troupe::learner {
namespace {

ActorCritic network_of(const ImpalaConfig& config, const replay::TransitionSpec& transitions) {
  return ActorCritic("impala", transitions, config.encoder, config.layers, config.lstm);
}

class ImpalaPolicy : public ActorCriticPolicy {
public:
  ImpalaPolicy(const ImpalaConfig& config, const replay::TransitionSpec& transitions)
      : ActorCriticPolicy("impala", network_of(config, transitions), transitions) {}
};

class Impala : public ActorCriticLearner {
public:
  Impala(const ImpalaConfig& config, const replay::TransitionSpec& transitions)
      : ActorCriticLearner({.learning_rate = config.learning_rate,
                            .gradient_norm = config.gradient_norm,
                            .precision = config.precision,
                            .entropy = config.entropy,
                            .batch_size = config.batch_size,
                            .item_uses = config.item_uses},
                           network_of(config, transitions), transitions),
        config_(config) {}

private:
  Metrics update(const TensorMap& batch) override;

  ImpalaConfig config_;
};

Metrics Impala::update(const TensorMap& batch) {
  const at::Tensor counts = flat(counting_steps(batch));
  const at::Tensor& first = batch.at("first"); // [batch, steps + 1]
  const std::int64_t steps = first.size(1) - 1;
  auto forward = span("forward");
  const ActorCritic::Output out = network().forward(leaves(), observations(batch), memory(batch));
  const auto without_last = [&](const at::Tensor& x) {
    return x.unflatten(0, first.sizes()).narrow(1, 0, steps).flatten(0, 1);
  };
  const at::Tensor head = without_last(out.head);
  const at::Tensor logarithm = network().log_probability(leaves(), head, flat(batch.at("action")));
  forward.end();
  auto advantages = span("advantages");
  const at::Tensor ratio =
      (logarithm.detach() - flat(batch.at(kLogProbability))).exp().view({-1, steps});
  const Advantages made =
      v_trace(batch, out.value.detach().view(first.sizes()).to(at::kCPU, at::kDouble),
              ratio.to(at::kCPU, at::kDouble),
              {.discount = discount(),
               .reward_scale = config_.reward_scale,
               .lambda = config_.lambda,
               .most_weight = config_.most_weight,
               .most_trace = config_.most_trace});
  const auto mean = [&](const at::Tensor& x) { return (x * counts).mean(); };
  at::Tensor advantage = flat(made.advantage);
  if (config_.normalise_advantages)
    advantage = normalised(advantage, counts);
  advantages.end();
  const at::Tensor policy_loss = -mean(logarithm * advantage);
  const at::Tensor value_loss = mean((without_last(out.value) - flat(made.value)).square()) / 2;
  const at::Tensor entropy = mean(network().entropy(leaves(), head));
  descend(policy_loss + config_.value_weight * value_loss - entropy_weight() * entropy);
  return {{"policy_loss", policy_loss.item<double>()},
          {"value_loss", value_loss.item<double>()},
          {"entropy", entropy.item<double>()},
          {"weight", mean(ratio.clamp_max(config_.most_weight).flatten()).item<double>()}};
}

Members members(ImpalaConfig& config) {
  Members made{{"layers", &config.layers},
               {"encoder", &config.encoder},
               {"lstm", &config.lstm},
               {"rollout", &config.rollout},
               {"batch_size", &config.batch_size},
               {"item_uses", &config.item_uses},
               {"most_weight", &config.most_weight},
               {"most_trace", &config.most_trace},
               {"lambda", &config.lambda},
               {"value_weight", &config.value_weight},
               {"learning_rate", &config.learning_rate},
               {"gradient_norm", &config.gradient_norm},
               {"reward_scale", &config.reward_scale},
               {"normalise_advantages", &config.normalise_advantages},
               {"precision", &config.precision}};
  config.entropy.add_members(made);
  return made;
}

std::vector<OptionProblem> problems(const ImpalaConfig& config, const AgentSetting& setting) {
  return all_problems(
      {small_pictures("impala", config.encoder, setting), config.entropy.problems("impala")});
}

} // namespace

/// Replay stores short rollouts.
Storage storage_of(const ImpalaConfig& config) {
  return {.sequence_steps = config.rollout,
          .sequence_period = config.rollout,
          .extras = rollout_extras(config.lstm),
          .on_policy = true,
          .item_uses = config.item_uses};
}

AgentPtr make_impala_agent(const ImpalaConfig& config) {
  return std::make_shared<const ConfiguredAgent<ImpalaConfig, Impala, ImpalaPolicy>>(config);
}

AgentKind impala_agent() {
  return agent_kind<ImpalaConfig>(
      {.name = "impala",
       .help = "importance-weighted actor-learners (Espeholt et al. 2018)",
       .pixels = true,
       .both = true,
       .actions = ActionKind::any,
       .recurrent = true,
       .metrics = {"policy_loss", "value_loss", "entropy", "weight", "gradient_norm", "sample_age"},
       .run = {.publish_period = 1},
       .options = agents::Impala::descriptor()},
      members, problems, make_impala_agent);
}

} // namespace troupe::learner
