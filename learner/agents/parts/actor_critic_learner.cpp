#include "learner/agents/parts/actor_critic_learner.hpp"

#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/parts/advantages.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/transition_batch.hpp"

namespace troupe::learner {

void RateConfig::add_members(Members& members) {
  members.insert(members.end(), {{"learning_rate", &learning_rate},
                                 {"learning_rate_end", &learning_rate_end},
                                 {"learning_rate_updates", &learning_rate_updates}});
}

ActorCriticLearner::ActorCriticLearner(Setting setting, ActorCritic network,
                                       const replay::TransitionSpec& transitions)
    : setting_(std::move(setting)), network_(std::move(network)), transitions_(transitions) {
  group_.declare(network_.layout());
}

void ActorCriticLearner::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  options_ = at::TensorOptions(setting_.precision == "float64" ? at::kDouble : at::kFloat)
                 .device(context.device());
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  group_.build(context, network_.initial(generator).to(options_), setting_.rate.learning_rate,
               setting_.gradient_norm);
  leaves_ = leaves_of(network_.layout(), group_.flat(), group_.gradient());
  random_ = Random(context.seed());
  updates_ = 0;
}

Metrics ActorCriticLearner::step_fn(ReplicaContext&, const TensorMap& batch) {
  const TensorMap used = checked_sequences(batch, transitions_, updates_ + 1);
  if (network_.is_choice())
    check_choices(used.at("action"), network_.outputs(), updates_ + 1);
  if (const RateConfig& rate = setting_.rate; rate.learning_rate_updates > 0)
    group_.adam().param_groups()[0].options().set_lr(Schedule{.start = rate.learning_rate,
                                                              .end = rate.learning_rate_end,
                                                              .steps = rate.learning_rate_updates}
                                                         .at(updates_));
  Metrics metrics = update(used);
  metrics["gradient_norm"] = group_.optimizer().gradient_norm();
  metrics["sample_age"] = sample_age(used, updates_);
  ++updates_;
  return metrics;
}

at::Tensor ActorCriticLearner::observations(const TensorMap& batch) const {
  const at::Tensor& seen = batch.at("observation"); // [batch, steps + 1, …]
  return seen.scalar_type() == at::kByte ? seen.flatten(0, 1).to(options_.device()) : flat(seen);
}

void ActorCriticLearner::descend(const at::Tensor& loss) {
  group_.gradient().zero_();
  loss.backward();
  group_.step("loss", loss.item<double>(), updates_ + 1);
}

TensorMap ActorCriticLearner::parameters() {
  TensorMap out;
  group_.show_parameters(out, false);
  return out;
}

TensorMap ActorCriticLearner::optimizer_state() {
  TensorMap out;
  group_.show_moments(out);
  out["counters.updates"] = counter(updates_);
  out["counters.adam_steps"] = counter(group_.adam().steps());
  out["random.state"] = counter(static_cast<std::int64_t>(random_.state()));
  return out;
}

void ActorCriticLearner::load(const TensorMap& parameters_in, const TensorMap& state_in) {
  at::NoGradGuard no_gradient;
  const TensorMap state = optimizer_state();
  replace_by_name(parameters_in, parameters(), state_in, state);
  const auto number = [&](const char* name) { return state.at(name).item<std::int64_t>(); };
  updates_ = number("counters.updates");
  group_.adam().set_steps(number("counters.adam_steps"));
  random_.set_state(static_cast<std::uint64_t>(number("random.state")));
}

at::Tensor ActorCriticLearner::policy_parameters() {
  return group_.flat().detach().to(at::kCPU, at::kFloat, false, true);
}

} // namespace troupe::learner
