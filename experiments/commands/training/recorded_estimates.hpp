#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/statistics/statistics.hpp"
#include "learner/off_policy/action_coverage.hpp"
#include "learner/off_policy/fitted_members.hpp"

namespace troupe::experiments {

/// What recorded episodes say of the discounted return of a policy that did not play them.
struct RecordedEstimates {
  Estimate fitted;             // by fitted Q evaluation
  std::vector<double> members; // mean of each network
  /// Per-decision importance sampling; none: `refusal` says why.
  struct Weighed {
    Estimate plain;
    Estimate self_normalised;
    Estimate doubly_robust; // with the fitted networks as the model
    Estimate self_normalised_doubly_robust;
  };
  std::optional<Weighed> weighed;
  std::string refusal;
  std::optional<double> effective_episodes; // if the weights are known
  std::optional<learner::EstimatedReturn> mean_weight;

  Estimate recorded;          // of the episodes as they are
  double recorded_return = 0; // undiscounted
  learner::ActionCoverage coverage;
  std::vector<std::string> warnings;
};

/// The policy is asked for its best actions unless config.explores; pass a learner::BestActions
/// then, which has the probabilities of those. Depends only on the arguments, `told` and `stopped`
/// as in learner::fit_members(). Throws std::runtime_error if it was stopped.
RecordedEstimates estimate_on_recording(const learner::RecordedPolicy& policy,
                                        const learner::FittedMembersConfig& config,
                                        const std::function<void(int, double)>& told,
                                        const std::function<bool()>& stopped);

} // namespace troupe::experiments
