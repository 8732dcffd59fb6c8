#pragma once

#include <string>
#include <vector>

#include "experiments/experiment.pb.h"

namespace troupe::experiments {

/// What differs between the experiment that a run was trained with and the one that it is to go on
/// with; both complete.
struct KeyChange {
  std::string key; // dotted; a block that only one of them has too
  std::string before, after;
};
std::vector<KeyChange> changes_between(const Experiment& before, const Experiment& after);

/// Complaints about changes that a checkpoint cannot follow: key, values, why, and the way out.
std::vector<std::string> refused_changes(const std::vector<KeyChange>& changes);

/// "replay.shards was 3 and is 5"
std::string text_of(const KeyChange& change);

} // namespace troupe::experiments
