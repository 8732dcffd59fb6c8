#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "learner/off_policy/fitted_evaluation.hpp"
#include "learner/off_policy/importance_sampling.hpp"
#include "learner/off_policy/recorded_policy.hpp"

namespace troupe::learner {

struct FittedMembersConfig {
  FittedEvaluation fit = {}; // the members' seeds are split from its own
  int members = 5;
  bool explores = false; // the policy, as in training
};

/// Networks of fitted Q evaluation, each of as many episodes as there are, drawn again.
struct FittedMembers {
  /// [members] mean value of the first observations of all episodes; the estimate is their mean.
  std::vector<double> means;
  /// [members] the same of the drawn episodes alone: what other episodes would have given.
  std::vector<double> replicates;
  FittedValues unseen; // unseen_values()
};

/// [rows] the mean of the values of the members that did not learn from the row's episode, or of
/// all where there is none: a doubly robust estimate's model, which must not know the episode that
/// it is to correct. `drawn`: the episodes from which each member learned.
FittedValues unseen_values(const RecordedSteps& steps, std::span<const FittedValues> members,
                           std::span<const std::vector<std::int64_t>> drawn);

/// Depends only on the arguments. `told` (may be empty) gets each member's number from 0 and mean.
/// `stopped` and errors: as fitted_values(); what was stopped has fewer members.
FittedMembers fit_members(const RecordedPolicy& policy, const FittedMembersConfig& config,
                          const std::function<void(int, double)>& told = {},
                          const std::function<bool()>& stopped = {});

/// What importance sampling needs of recorded steps with log-probabilities; `target` [rows]: those
/// of the evaluated policy (RecordedPolicy::log_probabilities()), `model` [rows]: may be empty.
std::vector<WeighedEpisode> weighed_episodes(const RecordedSteps& steps,
                                             const std::vector<double>& target,
                                             const FittedValues& model = {});

} // namespace troupe::learner
