#include "learner/agents/learners/actor_critic_learner.hpp"

#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/advantages.hpp"
#include "learner/agents/parts/transition_batch.hpp"

namespace troupe::learner {

ActorCriticLearner::ActorCriticLearner(const Setting& setting, ActorCritic network,
                                       const replay::TransitionSpec& transitions)
    : GroupReplica({.learning_rate = setting.learning_rate,
                    .gradient_norm = setting.gradient_norm,
                    .precision = setting.precision},
                   network.layout()),
      network_(std::move(network)),
      transitions_(transitions) {}

Metrics ActorCriticLearner::step_fn(ReplicaContext&, const TensorMap& batch) {
  const TensorMap used = checked_sequences(batch, transitions_, updates() + 1);
  network_.actions().check(used.at("action"), updates() + 1);
  Metrics metrics = update(used);
  metrics["gradient_norm"] = group().optimizer().gradient_norm();
  metrics["sample_age"] = sample_age(used, updates());
  count_updates(1);
  return metrics;
}

Observed ActorCriticLearner::observations(const TensorMap& batch) const {
  return observed(batch, "observation", transitions_, options()).map([](const at::Tensor& x) {
    return x.flatten(0, 1);
  });
}

ActorCritic::Memory ActorCriticLearner::memory(const TensorMap& batch) const {
  if (!network_.is_recurrent())
    return {};
  return {batch.at(kMemory).select(1, 0).to(options()), batch.at("first")};
}

void ActorCriticLearner::descend(const at::Tensor& loss) {
  group().gradient().zero_();
  auto backward = span("backward");
  loss.backward();
  backward.end();
  group().step("loss", loss.item<double>(), updates() + 1);
}

} // namespace troupe::learner
