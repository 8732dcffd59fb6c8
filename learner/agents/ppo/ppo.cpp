#include "learner/agents/ppo/ppo.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/parts/actor_critic.hpp"
#include "learner/agents/parts/advantages.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/exploration.hpp"
#include "learner/agents/parts/parameter_group.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/ppo/ppo.pb.h"

namespace troupe::learner {
namespace {

ActorCritic network_of(const PpoConfig& config, const replay::TransitionSpec& transitions) {
  return ActorCritic("ppo", transitions, config.encoder, config.layers);
}

class PpoPolicy : public ActorCriticPolicy {
public:
  PpoPolicy(const PpoConfig& config, const replay::TransitionSpec& transitions)
      : ActorCriticPolicy("ppo", network_of(config, transitions), transitions) {}
};

class Ppo : public Replica {
public:
  Ppo(const PpoConfig& config, const replay::TransitionSpec& transitions)
      : config_(config), transitions_(transitions), network_(network_of(config, transitions)) {
    group_.declare(network_.layout());
  }

  void build(ReplicaContext& context) override;
  Input input_fn(const InputContext&) override {
    return [] { return TensorMap{}; }; // replay's batches are brought by the caller of step_fn
  }
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  TensorMap parameters() override;
  TensorMap optimizer_state() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor policy_parameters() override {
    return group_.flat().detach().to(at::kCPU, at::kFloat, false, true);
  }

private:
  /// Steps of a batch, one after the other: [batch * steps, …].
  struct Steps {
    at::Tensor observation, action, log_probability, advantage, wanted_value, counts;

    Steps at(const at::Tensor& rows) const {
      return {observation.index_select(0, rows),     action.index_select(0, rows),
              log_probability.index_select(0, rows), advantage.index_select(0, rows),
              wanted_value.index_select(0, rows),    counts.index_select(0, rows)};
    }
  };
  Steps steps_of(const TensorMap& batch);
  at::Tensor shuffled(std::int64_t count);
  double backward(const Steps& steps, Metrics& sums);

  PpoConfig config_;
  replay::TransitionSpec transitions_;
  ActorCritic network_;
  ParameterGroup group_;
  at::TensorOptions options_;
  Leaves leaves_;
  Random random_{0};
  std::int64_t updates_ = 0;
};

void Ppo::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  options_ = at::TensorOptions(config_.precision == "float64" ? at::kDouble : at::kFloat)
                 .device(context.device());
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  group_.build(context, network_.initial(generator).to(options_), config_.learning_rate,
               config_.gradient_norm);
  leaves_ = leaves_of(network_.layout(), group_.flat(), group_.gradient());
  random_ = Random(context.seed());
  updates_ = 0;
}

Ppo::Steps Ppo::steps_of(const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const auto flat = [](const at::Tensor& tensor) { return tensor.flatten(0, 1); };
  const at::Tensor& seen = batch.at("observation"); // [batch, steps + 1, …]
  const bool picture = seen.scalar_type() == at::kByte;
  const at::Tensor observation = picture ? seen.to(options_.device()) : seen.to(options_);
  const at::Tensor values =
      network_.forward(leaves_, flat(observation)).value.view({seen.size(0), seen.size(1)});
  const Advantages made = generalized_advantages(batch, values.to(at::kCPU, at::kDouble),
                                                 transitions_.discount, config_.lambda);
  return {flat(observation.narrow(1, 0, seen.size(1) - 1)),
          flat(batch.at("action")).to(options_),
          flat(batch.at(kLogProbability)).to(options_),
          flat(made.advantage).to(options_),
          flat(made.value).to(options_),
          flat(counting_steps(batch)).to(options_)};
}

/// A permutation of the numbers below `count`.
at::Tensor Ppo::shuffled(std::int64_t count) {
  at::Tensor rows = at::arange(count, at::kLong);
  auto* row = rows.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(row[i], row[random_.below(static_cast<std::uint32_t>(i + 1))]);
  return rows.to(options_.device());
}

/// The loss of a minibatch; its gradient is in the group. Steps that count 0 are no steps.
double Ppo::backward(const Steps& steps, Metrics& sums) {
  at::AutoGradMode with_gradient(true);
  const ActorCritic::Output out = network_.forward(leaves_, steps.observation);
  const auto mean = [&](const at::Tensor& x) { return (x * steps.counts).mean(); };
  at::Tensor advantage = steps.advantage;
  if (config_.normalise_advantages) {
    const at::Tensor counted = steps.counts.sum().clamp_min(1);
    const at::Tensor center = (advantage * steps.counts).sum() / counted;
    const at::Tensor variance = ((advantage - center).square() * steps.counts).sum() / counted;
    advantage = (advantage - center) / (variance.sqrt() + 1e-8);
  }
  const at::Tensor difference =
      network_.log_probability(leaves_, out.head, steps.action) - steps.log_probability;
  const at::Tensor ratio = difference.exp();
  const at::Tensor gain =
      at::minimum(ratio * advantage, ratio.clamp(1 - config_.clip, 1 + config_.clip) * advantage);
  const at::Tensor policy_loss = -mean(gain);
  const at::Tensor value_loss = mean((out.value - steps.wanted_value).square()) / 2;
  const at::Tensor entropy = mean(network_.entropy(leaves_, out.head));
  const at::Tensor loss =
      policy_loss + config_.value_weight * value_loss - config_.entropy * entropy;
  group_.gradient().zero_();
  loss.backward();
  const auto add = [&](const char* name, const at::Tensor& value) {
    sums[name] += value.item<double>() / (config_.epochs * config_.minibatches);
  };
  add("policy_loss", policy_loss);
  add("value_loss", value_loss);
  add("entropy", entropy);
  add("divergence", mean(ratio.detach() - 1 - difference.detach()));
  add("clipped", mean((ratio.detach() - 1).abs().gt(config_.clip).to(options_)));
  return loss.item<double>();
}

Metrics Ppo::step_fn(ReplicaContext&, const TensorMap& batch) {
  const TensorMap used = checked_sequences(batch, transitions_, updates_ + 1);
  if (network_.is_choice())
    check_choices(used.at("action"), network_.outputs(), updates_ + 1);
  if (config_.learning_rate_updates > 0) {
    const Schedule rate{.start = config_.learning_rate,
                        .end = config_.learning_rate_end,
                        .steps = config_.learning_rate_updates};
    group_.adam().param_groups()[0].options().set_lr(rate.at(updates_));
  }
  const Steps steps = steps_of(used);
  const std::int64_t count = steps.action.size(0);
  Metrics metrics;
  for (int epoch = 0; epoch < config_.epochs; ++epoch) {
    const at::Tensor order = shuffled(count);
    for (int part = 0; part < config_.minibatches; ++part) {
      const std::int64_t first = count * part / config_.minibatches;
      const std::int64_t end = count * (part + 1) / config_.minibatches;
      if (first == end)
        continue;
      const double loss = backward(steps.at(order.narrow(0, first, end - first)), metrics);
      group_.step("loss", loss, updates_ + 1);
    }
  }
  metrics["gradient_norm"] = group_.optimizer().gradient_norm();
  metrics["parameter_lag"] = parameter_lag(used, updates_);
  ++updates_;
  return metrics;
}

TensorMap Ppo::parameters() {
  TensorMap out;
  group_.show_parameters(out, false);
  return out;
}

TensorMap Ppo::optimizer_state() {
  TensorMap out;
  group_.show_moments(out);
  out["counters.updates"] = counter(updates_);
  out["counters.adam_steps"] = counter(group_.adam().steps());
  out["random.state"] = counter(static_cast<std::int64_t>(random_.state()));
  return out;
}

void Ppo::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  at::NoGradGuard no_gradient;
  const TensorMap state = optimizer_state();
  replace_by_name(parameters_in, parameters(), state_in, state);
  const auto number = [&](const char* name) { return state.at(name).item<std::int64_t>(); };
  updates_ = number("counters.updates");
  group_.adam().set_steps(number("counters.adam_steps"));
  random_.set_state(static_cast<std::uint64_t>(number("random.state")));
}

Members members(PpoConfig& config) {
  return {{"layers", &config.layers},
          {"encoder", &config.encoder},
          {"rollout", &config.rollout},
          {"batch_size", &config.batch_size},
          {"epochs", &config.epochs},
          {"minibatches", &config.minibatches},
          {"learning_rate", &config.learning_rate},
          {"learning_rate_end", &config.learning_rate_end},
          {"learning_rate_updates", &config.learning_rate_updates},
          {"clip", &config.clip},
          {"lambda", &config.lambda},
          {"entropy", &config.entropy},
          {"value_weight", &config.value_weight},
          {"gradient_norm", &config.gradient_norm},
          {"normalise_advantages", &config.normalise_advantages},
          {"precision", &config.precision}};
}

std::vector<OptionProblem> problems(const PpoConfig& config, const AgentSetting& setting) {
  return small_pictures("ppo", config.encoder, setting);
}

} // namespace

/// What replay stores: rollouts of the policy that acts, each used once.
Storage storage_of(const PpoConfig& config) {
  return {.sequence_steps = config.rollout,
          .sequence_period = config.rollout,
          .extras = {{kLogProbability, env::ElementType::float32, {}}},
          .on_policy = true};
}

AgentPtr make_ppo_agent(const PpoConfig& config) {
  return std::make_shared<const ConfiguredAgent<PpoConfig, Ppo, PpoPolicy>>(config);
}

AgentKind ppo_agent() {
  return agent_kind<PpoConfig>({.name = "ppo",
                                .help = "proximal policy optimisation (Schulman et al. 2017): "
                                        "continuous actions or one choice",
                                .pixels = true,
                                .actions = ActionKind::either,
                                .options = agents::Ppo::descriptor()},
                               members, problems, make_ppo_agent);
}

} // namespace troupe::learner
