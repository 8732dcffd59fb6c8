#pragma once

#include <algorithm>
#include <cmath>

#include <ATen/ops/full.h>

#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"

namespace troupe::learner {

/// The weight of the entropy in an agent's losses. Its logarithm is learned so that the policy's
/// entropy approaches a target.
class Temperature {
public:
  Temperature(double start, double learning_rate, double target_entropy)
      : start_(start), learning_rate_(learning_rate), target_(target_entropy) {
    ParameterLayout layout;
    layout.add("log_temperature", {1});
    group_.declare(std::move(layout));
  }

  void build(ReplicaContext& context, const at::TensorOptions& options) {
    group_.build(context, at::full({1}, std::log(start_), options),
                 {.learning_rate = std::max(learning_rate_, 1e-12)});
  }
  at::Tensor value() { return group_.flat().exp().squeeze(); } // []
  /// Makes a step unless the learning rate is 0. `entropy`, []: the entropy of the policy that has
  /// just been trained with value().
  void learn(AgentUpdate& update, const at::Tensor& entropy) {
    if (learning_rate_ == 0)
      return;
    group_.gradient().copy_(entropy - target_);
    update.step(group_, "temperature_loss", group_.flat() * group_.gradient());
  }
  ParameterGroup& group() { return group_; }

private:
  double start_;
  double learning_rate_;
  double target_;
  ParameterGroup group_;
};

} // namespace troupe::learner
