#include "learner/agents/learners/actor_critic_learner.hpp"

#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/advantages.hpp"
#include "learner/agents/parts/transition_batch.hpp"

namespace troupe::learner {

void EntropyConfig::add_members(Members& members) {
  members.insert(members.end(),
                 {{"entropy", &start}, {"entropy_end", &end}, {"entropy_steps", &steps}});
}

std::vector<OptionProblem> EntropyConfig::problems(const std::string& agent) const {
  if (steps > 0 || end == 0)
    return {};
  return {{"entropy_end", "is " + number_text(end) + ", but " + agent
                              + ".entropy_steps is 0, so that the weight is constant; leave it "
                                "out, or give the length of the schedule"}};
}

double EntropyConfig::at(std::int64_t step) const {
  return steps == 0 ? start : Schedule{.start = start, .end = end, .steps = steps}.at(step);
}

ActorCriticLearner::ActorCriticLearner(const Setting& setting, ActorCritic network,
                                       const replay::TransitionSpec& transitions)
    : GroupReplica({.learning_rate = setting.learning_rate,
                    .gradient_norm = setting.gradient_norm,
                    .precision = setting.precision,
                    .adam_epsilon = setting.adam_epsilon},
                   network.layout()),
      network_(std::move(network)),
      transitions_(transitions),
      entropy_(setting.entropy),
      batch_size_(setting.batch_size),
      item_uses_(setting.item_uses) {}

Metrics ActorCriticLearner::step_fn(ReplicaContext& context, const TensorMap& batch) {
  workers_ = context.num_replicas() / context.num_replicas_in_sync();
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
