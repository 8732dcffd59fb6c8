#pragma once

#include <filesystem>
#include <string>

#include "actors/roles/learner_actor.hpp"

namespace troupe::actors {

/// Returns a copy of the current state that later updates do not change.
LearnerWrite captured(const LearnerState& state, const std::filesystem::path& folder,
                      bool snapshot);

/// Writes a part of a checkpoint into its folder, or a snapshot to folder/<updates> atomically.
/// Once a snapshot is on the disk, the other snapshots are removed. Writes nothing if a later
/// incarnation of the replica has written a snapshot. Any thread. Throws std::runtime_error naming
/// the file and the reason.
void write_learner(const LearnerWrite& write);

struct SavedLearner {
  learner::TensorMap parameters, optimizer;
  std::int64_t updates = 0;
};

/// Reads the state with which a replica starts: its own part, or another replica's if it has none.
/// In that case `own` replaces the other replica's random streams. Throws std::runtime_error naming
/// the file.
SavedLearner read_learner(const std::filesystem::path& folder, int replica,
                          const learner::TensorMap& own);

} // namespace troupe::actors
