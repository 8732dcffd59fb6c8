#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// A key that differs between a run's experiment and the one to resume it with. Both must be
/// complete.
struct KeyChange {
  std::string key; // dotted; may also be a block that only one of them has
  std::string before, after;
};
std::vector<KeyChange> changes_between(const Experiment& before, const Experiment& after);

/// Returns complaints about changes that do not fit a checkpoint, with key, values, reason and
/// remedy.
std::vector<std::string> refused_changes(const std::vector<KeyChange>& changes);

/// "replay.shards was 3 and is 5"
std::string text_of(const KeyChange& change);

} // namespace troupe::experiments
