#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// A key that differs between the experiment of a run and the one to resume it with; both complete.
struct KeyChange {
  std::string key; // dotted; a block that only one of them has too
  std::string before, after;
};
std::vector<KeyChange> changes_between(const Experiment& before, const Experiment& after);

/// Complaints about changes that do not fit a checkpoint: key, values, reason, remedy.
std::vector<std::string> refused_changes(const std::vector<KeyChange>& changes);

/// "replay.shards was 3 and is 5"
std::string text_of(const KeyChange& change);

} // namespace troupe::experiments
