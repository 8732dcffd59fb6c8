#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/off_policy/recorded_steps.hpp"

namespace troupe::learner {

/// A policy along recorded episodes, which it did not play. What it remembers at a row is what it
/// would remember if it had played the recorded actions from the episode's beginning, which every
/// recorded episode has. One thread at a time, as the policy.
class RecordedPolicy {
public:
  /// The policy explores as after `trained` agent steps. Keeps Policy::state_size() numbers of each
  /// row; `steps` and `policy` must outlive it.
  RecordedPolicy(const RecordedSteps& steps, Policy& policy, std::int64_t trained = 0);

  const RecordedSteps& steps() const { return steps_; }
  bool has_density() const { return policy_.has_density(); }
  /// float32 [rows, state size] before each row is observed; undefined: it remembers nothing.
  const at::Tensor& memory() const { return memory_; }

  /// What it does at each row [rows, action size]: its best actions or, with a source of random
  /// numbers, what it explores.
  at::Tensor actions(ActingRandom* random = nullptr) const;
  /// [rows] the logarithm of the probability with which it plays the recorded action, -infinity if
  /// it never does, 0 in the last row of an episode. Throws std::logic_error unless has_density().
  std::vector<double> log_probabilities() const;

private:
  /// Calls `act` with the observations of all rows, some at once, and the first of them.
  void in_chunks(const std::function<void(const Observations&, std::int64_t)>& act) const;

  const RecordedSteps& steps_;
  Policy& policy_;
  std::int64_t trained_;
  at::Tensor memory_;
};

} // namespace troupe::learner
