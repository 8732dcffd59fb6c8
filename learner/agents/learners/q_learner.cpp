#include "learner/agents/learners/q_learner.hpp"

#include <torch/types.h>

namespace troupe::learner {

void QLearner::build(ReplicaContext& context) {
  GroupReplica::build(context);
  targets_ = leaves_of(group().layout(), group().target());
}

Metrics QLearner::step_fn(ReplicaContext&, const TensorMap& batch) {
  const TensorMap used = checked(batch);
  at::NoGradGuard no_gradient;
  Metrics metrics = make_update(used, 0, [&](const TensorMap& on_device) {
    auto both = span("forward and backward");
    group().gradient().zero_();
    const Learnt learnt = [&] {
      at::AutoGradMode with_gradient(true);
      return backward(on_device);
    }();
    both.end();
    in_update().step(group(), "critic_loss", learnt.loss);
    in_update().tell("critic_loss", learnt.loss);
    in_update().tell("q_mean", learnt.q_mean);
    if (on_device.contains("weight"))
      in_update().tell_rows(learnt.priorities);
  });
  group().average_target(1, finish_update(group(), metrics, target_period_));
  return metrics;
}

} // namespace troupe::learner
