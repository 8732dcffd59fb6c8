#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/statistics/statistics.hpp"
#include "learner/off_policy/action_coverage.hpp"
#include "learner/off_policy/fitted_members.hpp"

namespace troupe::experiments {

/// Estimates of a policy's discounted return from recorded episodes that another policy played.
struct RecordedEstimates {
  Estimate fitted;             // from fitted Q evaluation
  std::vector<double> members; // mean estimate of each network
  /// Per-decision importance sampling; absent if `refusal` gives a reason.
  struct Weighed {
    Estimate plain;
    Estimate self_normalised;
    Estimate doubly_robust; // uses the fitted networks as its model
    Estimate self_normalised_doubly_robust;
  };
  std::optional<Weighed> weighed;
  std::string refusal;
  std::optional<double> effective_episodes; // only if the weights are known
  std::optional<learner::EstimatedReturn> mean_weight;

  Estimate recorded;          // return of the recorded episodes
  double recorded_return = 0; // undiscounted
  learner::ActionCoverage coverage;
  std::vector<std::string> warnings;
};

/// Estimates the return of the policy's best actions or, if config.explores is set, of its
/// exploring actions. For the best actions, pass a learner::BestActions, which knows their
/// probabilities. The result depends only on the arguments. `told` and `stopped`: see
/// learner::fit_members(). Throws std::runtime_error if it was stopped.
RecordedEstimates estimate_on_recording(const learner::RecordedPolicy& policy,
                                        const learner::FittedMembersConfig& config,
                                        const std::function<void(int, double)>& told,
                                        const std::function<bool()>& stopped);

} // namespace troupe::experiments
