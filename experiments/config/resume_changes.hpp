#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/unfinished_run.hpp"

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

/// How a run fits a complete experiment. A damaged config.textproto is a refusal.
RunFit fit_of_run(const std::filesystem::path& run, const Experiment& experiment);

/// "replay.shards was 3 and is 5"
std::string text_of(const KeyChange& change);

} // namespace troupe::experiments
