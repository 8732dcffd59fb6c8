#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// How the outputs of a network determine an action. The outputs are the mean of each continuous
/// component and the n logits of each choice, in the order of the action's components. The standard
/// deviations of continuous components do not depend on the observation; their logarithms are
/// separate parameters. Plain data.
class ActionHead {
public:
  explicit ActionHead(const replay::TransitionSpec& transitions);

  std::int64_t outputs() const { return outputs_; }
  std::int64_t continuous() const { return continuous_; } // number of continuous components
  std::int64_t size() const { return size_; }             // number of components of an action

  /// Log-probabilities [batch] of actions [batch, size], given outputs [batch, outputs] and
  /// deviations [continuous].
  at::Tensor log_probability(const at::Tensor& outputs, const at::Tensor& deviations,
                             const at::Tensor& action) const;
  at::Tensor entropy(const at::Tensor& outputs, const at::Tensor& deviations) const;

  /// Writes the most probable action of one row. Means are clipped to [-1, 1].
  void best(const float* outputs, float* action) const;
  /// Draws an action of one row and returns its log-probability.
  double sample(const float* outputs, const float* deviations, ActingRandom& random,
                float* action) const;

  /// The log-probability of one row's action as defined by Policy::log_probability(). Its
  /// continuous components must be clipped to [-1, 1].
  double log_played(const float* outputs, const float* deviations, const float* action) const;

  /// Describes best() for a policy graph.
  std::vector<GraphAction> describe() const;

  /// Throws std::runtime_error naming `update` and the row if a batch's action contains an invalid
  /// choice.
  void check(const at::Tensor& action, std::int64_t update) const;

private:
  /// Consecutive continuous components, or one choice.
  struct Part {
    std::int64_t number = 0; // index of its first component in the action
    std::int64_t count = 1;
    std::int64_t output = 0;
    std::int64_t choices = 0;   // 0: continuous
    std::int64_t deviation = 0; // index of its first deviation, if continuous
  };

  std::vector<Part> parts_;
  std::int64_t outputs_ = 0;
  std::int64_t continuous_ = 0;
  std::int64_t size_ = 0;
};

} // namespace troupe::learner
