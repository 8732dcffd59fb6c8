#include "learner/agents/learners/q_learner.hpp"

#include <utility>

#include <torch/types.h>

namespace troupe::learner {

QLearner::QLearner(const Setting& setting, ParameterLayout layout)
    : GroupReplica({.learning_rate = setting.learning_rate,
                    .gradient_norm = setting.gradient_norm,
                    .precision = setting.precision,
                    .target = true},
                   std::move(layout)),
      target_period_(setting.target_period) {}

void QLearner::build(ReplicaContext& context) {
  GroupReplica::build(context);
  targets_ = leaves_of(group().layout(), group().target());
}

Metrics QLearner::step_fn(ReplicaContext&, const TensorMap& batch) {
  const TensorMap used = checked(batch);
  Learnt learnt;
  {
    const auto both = span("forward and backward");
    at::AutoGradMode with_gradient(true);
    group().gradient().zero_();
    learnt = backward(used);
  }
  at::NoGradGuard no_gradient;
  group().step("critic_loss", learnt.loss, updates() + 1);
  const std::int64_t before = updates() / target_period_;
  count_updates(group().optimizer().updates_applied());
  if (updates() / target_period_ > before)
    group().average_target(1, 1);
  priorities_ =
      used.contains("weight") ? learnt.priorities.to(at::kCPU, at::kDouble) : at::Tensor();
  return {{"critic_loss", learnt.loss},
          {"q_mean", learnt.q_mean},
          {"gradient_norm", group().optimizer().gradient_norm()}};
}

} // namespace troupe::learner
