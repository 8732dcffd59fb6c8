#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/off_policy/recorded_steps.hpp"

namespace troupe::learner {

/// A policy evaluated on recorded episodes that it did not play. Its memory at a row is what it
/// would be if the policy had played the recorded actions from the beginning of the episode.
/// Recorded episodes must therefore be complete. One thread at a time, as for the policy.
class RecordedPolicy {
public:
  /// `trained`: number of agent steps, for the policy's exploration schedule (Exploration::steps).
  /// Keeps Policy::state_size() numbers for each row. `steps` and `policy` must outlive this
  /// object.
  RecordedPolicy(const RecordedSteps& steps, Policy& policy, std::int64_t trained = 0);

  const RecordedSteps& steps() const { return steps_; }
  bool has_density() const { return policy_.has_density(); }
  /// The memory before each row is observed, float32 [rows, state size]; undefined for a policy
  /// without memory.
  const at::Tensor& memory() const { return memory_; }

  /// The policy's actions at each row, [rows, action size]: its best actions, or explored actions
  /// if `random` is given.
  at::Tensor actions(ActingRandom* random = nullptr) const;
  /// The log-probability [rows] with which the policy plays the recorded action: -infinity if it
  /// never does, 0 in the last row of an episode. Throws std::logic_error unless has_density().
  std::vector<double> log_probabilities() const;

private:
  /// Calls `act` with the observations of all rows, chunk by chunk, and the number of the chunk's
  /// first row.
  void in_chunks(const std::function<void(const Observations&, std::int64_t)>& act) const;

  const RecordedSteps& steps_;
  Policy& policy_;
  std::int64_t trained_;
  at::Tensor memory_;
};

} // namespace troupe::learner
