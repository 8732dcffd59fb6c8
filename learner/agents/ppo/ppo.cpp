#include "learner/agents/ppo/ppo.hpp"

#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/advantages.hpp"
#include "learner/agents/ppo/ppo.pb.h"

namespace troupe::learner {
namespace {

ActorCritic network_of(const PpoConfig& config, const replay::TransitionSpec& transitions) {
  return ActorCritic("ppo", transitions, config.encoder, config.layers, config.lstm);
}

class PpoPolicy : public ActorCriticPolicy {
public:
  PpoPolicy(const PpoConfig& config, const replay::TransitionSpec& transitions)
      : ActorCriticPolicy("ppo", network_of(config, transitions), transitions) {}
};

class Ppo : public ActorCriticLearner {
public:
  Ppo(const PpoConfig& config, const replay::TransitionSpec& transitions)
      : ActorCriticLearner({.learning_rate = config.learning_rate,
                            .adam_epsilon = config.adam_epsilon,
                            .gradient_norm = config.gradient_norm,
                            .precision = config.precision,
                            .entropy = config.entropy,
                            .batch_size = config.batch_size},
                           network_of(config, transitions), transitions),
        config_(config) {}

private:
  /// What minibatches are drawn from: single steps [batch * steps, 1, …] or, for recurrent
  /// networks, sequences [batch, steps, …].
  struct Rows {
    Observed observation;
    at::Tensor action, log_probability, advantage, wanted_value, counts;
    ActorCritic::Memory memory = {};

    /// Selects rows and flattens them to consecutive steps.
    Rows at(const at::Tensor& rows) const {
      const auto chosen = [&](const at::Tensor& x) {
        return x.index_select(0, rows).flatten(0, 1);
      };
      Rows made{observation.map(chosen), chosen(action),       chosen(log_probability),
                chosen(advantage),       chosen(wanted_value), chosen(counts)};
      if (memory.state.defined())
        made.memory = {memory.state.index_select(0, rows),
                       memory.first.index_select(0, rows.to(at::kCPU))};
      return made;
    }
  };
  Metrics update(const TensorMap& batch) override;
  Rows rows_of(const TensorMap& batch) const;
  at::Tensor shuffled(std::int64_t count);
  at::Tensor loss_of(const Rows& steps, Metrics& sums) const;

  PpoConfig config_;
};

Ppo::Rows Ppo::rows_of(const TensorMap& batch) const {
  const auto advantages = span("advantages");
  at::NoGradGuard no_gradient;
  const Observed seen = observations(batch);
  const at::Tensor& first = batch.at("first"); // [batch, steps + 1]
  const std::int64_t steps = first.size(1) - 1;
  const ActorCritic::Memory before = memory(batch);
  const at::Tensor values = network().forward(leaves(), seen, before).value.view(first.sizes());
  const Advantages made =
      generalized_advantages(batch, values.to(at::kCPU, at::kDouble), discount(), config_.lambda);
  const auto rows = [&](const at::Tensor& x) { // [batch, steps, …]
    return network().is_recurrent() ? x : x.flatten(0, 1).unsqueeze(1);
  };
  Rows out{seen.map([&](const at::Tensor& x) {
             return rows(x.unflatten(0, first.sizes()).narrow(1, 0, steps));
           }),
           rows(batch.at("action").to(options())),
           rows(batch.at(kLogProbability).to(options())),
           rows(made.advantage.to(options())),
           rows(made.value.to(options())),
           rows(counting_steps(batch).to(options()))};
  if (network().is_recurrent())
    out.memory = {before.state, first.narrow(1, 0, steps)};
  return out;
}

/// A random permutation of the numbers below `count`.
at::Tensor Ppo::shuffled(std::int64_t count) {
  at::Tensor rows = at::arange(count, at::kLong);
  auto* row = rows.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(row[i], row[random().below(static_cast<std::uint32_t>(i + 1))]);
  return rows.to(options().device());
}

/// The loss of a minibatch. Steps whose `counts` is 0 are ignored.
at::Tensor Ppo::loss_of(const Rows& steps, Metrics& sums) const {
  const auto forward = span("forward");
  const ActorCritic::Output out = network().forward(leaves(), steps.observation, steps.memory);
  const auto mean = [&](const at::Tensor& x) { return (x * steps.counts).mean(); };
  const at::Tensor advantage =
      config_.normalise_advantages ? normalised(steps.advantage, steps.counts) : steps.advantage;
  const at::Tensor difference =
      network().log_probability(leaves(), out.head, steps.action) - steps.log_probability;
  const at::Tensor ratio = difference.exp();
  const at::Tensor gain =
      at::minimum(ratio * advantage, ratio.clamp(1 - config_.clip, 1 + config_.clip) * advantage);
  const at::Tensor policy_loss = -mean(gain);
  const at::Tensor value_loss = mean((out.value - steps.wanted_value).square()) / 2;
  const at::Tensor entropy = mean(network().entropy(leaves(), out.head));
  const auto add = [&](const char* name, const at::Tensor& value) {
    sums[name] += value.item<double>() / (config_.epochs * config_.minibatches);
  };
  add("policy_loss", policy_loss);
  add("value_loss", value_loss);
  add("entropy", entropy);
  add("divergence", mean(ratio.detach() - 1 - difference.detach()));
  add("clipped", mean((ratio.detach() - 1).abs().gt(config_.clip).to(options())));
  return policy_loss + config_.value_weight * value_loss - entropy_weight() * entropy;
}

Metrics Ppo::update(const TensorMap& batch) {
  const Rows rows = rows_of(batch);
  const std::int64_t count = rows.action.size(0);
  Metrics metrics;
  for (int epoch = 0; epoch < config_.epochs; ++epoch) {
    const at::Tensor order = shuffled(count);
    for (int part = 0; part < config_.minibatches; ++part) {
      const std::int64_t begin = count * part / config_.minibatches;
      const std::int64_t end = count * (part + 1) / config_.minibatches;
      if (begin < end)
        descend(loss_of(rows.at(order.narrow(0, begin, end - begin)), metrics));
    }
  }
  return metrics;
}

Members members(PpoConfig& config) {
  Members made{{"layers", &config.layers},
               {"encoder", &config.encoder},
               {"lstm", &config.lstm},
               {"rollout", &config.rollout},
               {"batch_size", &config.batch_size},
               {"epochs", &config.epochs},
               {"minibatches", &config.minibatches},
               {"clip", &config.clip},
               {"lambda", &config.lambda},
               {"value_weight", &config.value_weight},
               {"learning_rate", &config.learning_rate},
               {"adam_epsilon", &config.adam_epsilon},
               {"gradient_norm", &config.gradient_norm},
               {"normalise_advantages", &config.normalise_advantages},
               {"precision", &config.precision}};
  config.entropy.add_members(made);
  return made;
}

std::vector<OptionProblem> problems(const PpoConfig& config, const AgentSetting& setting) {
  return all_problems(
      {small_pictures("ppo", config.encoder, setting), config.entropy.problems("ppo")});
}

} // namespace

/// Replay stores rollouts of the acting policy, each of which is used once.
Storage storage_of(const PpoConfig& config) {
  return {.sequence_steps = config.rollout,
          .sequence_period = config.rollout,
          .extras = rollout_extras(config.lstm),
          .on_policy = true,
          .newest_policy = true};
}

AgentPtr make_ppo_agent(const PpoConfig& config) {
  return std::make_shared<const ConfiguredAgent<PpoConfig, Ppo, PpoPolicy>>(config);
}

AgentKind ppo_agent() {
  return agent_kind<PpoConfig>({.name = "ppo",
                                .help = "proximal policy optimisation (Schulman et al. 2017)",
                                .pixels = true,
                                .both = true,
                                .actions = ActionKind::any,
                                .recurrent = true,
                                .metrics = {"policy_loss", "value_loss", "entropy", "divergence",
                                            "clipped", "gradient_norm", "sample_age"},
                                .run = {.publish_period = 1},
                                .options = agents::Ppo::descriptor()},
                               members, problems, make_ppo_agent);
}

} // namespace troupe::learner
