#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// How a network's outputs make an action: for each continuous number its mean, for each choice the
/// logits of its n, in the order of the action's numbers. Deviations of continuous numbers do not
/// depend on the observation: their logarithms are parameters of their own. Plain data.
class ActionHead {
public:
  explicit ActionHead(const replay::TransitionSpec& transitions);

  std::int64_t outputs() const { return outputs_; }
  std::int64_t continuous() const { return continuous_; } // numbers; as many deviations
  std::int64_t size() const { return size_; }             // numbers of an action

  /// [batch] of actions [batch, size], of outputs [batch, outputs] and deviations [continuous].
  at::Tensor log_probability(const at::Tensor& outputs, const at::Tensor& deviations,
                             const at::Tensor& action) const;
  at::Tensor entropy(const at::Tensor& outputs, const at::Tensor& deviations) const;

  /// Of one row: the most probable action, means limited to [-1, 1].
  void best(const float* outputs, float* action) const;
  /// Of one row: draws an action; the logarithm of its probability.
  double sample(const float* outputs, const float* deviations, ActingRandom& random,
                float* action) const;

  /// Of one row: as Policy::log_probability(), of an action whose numbers are limited to [-1, 1].
  double log_played(const float* outputs, const float* deviations, const float* action) const;

  /// What best() does.
  std::vector<GraphAction> describe() const;

  /// Throws std::runtime_error naming `update` and the row if a choice of a batch's action is not
  /// one.
  void check(const at::Tensor& action, std::int64_t update) const;

  /// Neighbouring continuous numbers, or one choice.
  struct Part {
    std::int64_t number = 0; // of the action
    std::int64_t count = 1;
    std::int64_t output = 0;
    std::int64_t choices = 0;   // 0: continuous
    std::int64_t deviation = 0; // the first, of continuous ones
  };
  const std::vector<Part>& parts() const { return parts_; }

private:
  std::vector<Part> parts_;
  std::int64_t outputs_ = 0;
  std::int64_t continuous_ = 0;
  std::int64_t size_ = 0;
};

} // namespace troupe::learner
