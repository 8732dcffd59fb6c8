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
  FittedEvaluation fit = {}; // the seed of each member is derived from fit.seed
  int members = 5;
  bool explores = false; // whether the policy explores, as in training
};

/// An ensemble of networks fitted by Q evaluation, each on a bootstrap sample of the episodes.
struct FittedMembers {
  /// [members] mean value of the first observations of all episodes. The estimate is the mean over
  /// the members.
  std::vector<double> means;
  /// [members] the same, only over the member's bootstrap sample: the bootstrap replicates of the
  /// estimate.
  std::vector<double> replicates;
  FittedValues unseen; // see unseen_values()
};

/// Returns [rows] the mean value over the members that did not learn from the row's episode, or
/// over all members if there is none. It is the model of a doubly robust estimate, which must not
/// have learned from the episode that it corrects. `drawn` holds the episodes from which each
/// member learned.
FittedValues unseen_values(const RecordedSteps& steps, std::span<const FittedValues> members,
                           std::span<const std::vector<std::int64_t>> drawn);

/// Fits all members. The result depends only on the arguments. `told` (may be empty) is called with
/// each member's index, from 0, and its mean. `stopped` and the exceptions are those of
/// fitted_values(); a stopped fit returns fewer members.
FittedMembers fit_members(const RecordedPolicy& policy, const FittedMembersConfig& config,
                          const std::function<void(int, double)>& told = {},
                          const std::function<bool()>& stopped = {});

/// Converts recorded steps with log-probabilities to the input of importance sampling. `target`
/// [rows] holds the log-probabilities of the evaluated policy
/// (RecordedPolicy::log_probabilities()); `model` [rows] may be empty.
std::vector<WeighedEpisode> weighed_episodes(const RecordedSteps& steps,
                                             const std::vector<double>& target,
                                             const FittedValues& model = {});

} // namespace troupe::learner
