#pragma once

#include <cstdint>
#include <optional>

#include "learner/off_policy/recorded_steps.hpp"

namespace troupe::learner {

/// How far what a policy does lies from what was recorded.
struct ActionCoverage {
  /// In the same states: the mean distance of continuous numbers, which are within [-1, 1]; the
  /// part of choices that are the recorded ones.
  std::optional<double> distance, agreement;
  /// The part of states in which the pair of state and policy's action is farther from the nearest
  /// recorded pair of another episode than 95 % of the recorded pairs are: 0.05 if the policy does
  /// what was recorded. Not of pictures, nor of a single episode.
  std::optional<double> outside;
};

/// `actions`: RecordedPolicy::actions(). Looks at some thousand steps, which depend on `seed`.
ActionCoverage action_coverage(const RecordedSteps& steps, const at::Tensor& actions,
                               std::uint64_t seed);

} // namespace troupe::learner
