#pragma once

#include <cstdint>
#include <optional>

#include "learner/off_policy/recorded_steps.hpp"

namespace troupe::learner {

/// How far a policy's actions are from the recorded ones.
struct ActionCoverage {
  /// Comparison in the recorded states: the mean distance of the continuous components, which are
  /// in [-1, 1], and the fraction of choices that equal the recorded ones.
  std::optional<double> distance, agreement;
  /// The fraction of states in which the policy leaves the recorded data: the pair of state and
  /// policy's action is farther from the nearest recorded pair of another episode than 95 % of the
  /// recorded pairs are. It is 0.05 if the policy acts as recorded. Not computed for pictures or
  /// for a single episode.
  std::optional<double> outside;
};

/// Compares `actions`, a result of RecordedPolicy::actions(), with the recording. Uses a sample of
/// a few thousand steps, which depends on `seed`.
ActionCoverage action_coverage(const RecordedSteps& steps, const at::Tensor& actions,
                               std::uint64_t seed);

} // namespace troupe::learner
