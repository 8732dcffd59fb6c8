#pragma once

#include <filesystem>
#include <string>

#include "actors/roles/learner_actor.hpp"

namespace troupe::actors {

/// A copy of the current state, independent of later updates.
LearnerWrite captured(const LearnerState& state, const std::filesystem::path& folder,
                      bool snapshot);

/// Writes a part of a checkpoint into its folder, or a snapshot to folder/<updates> atomically;
/// when that is on the disk, it removes the other snapshots. It writes nothing when a later
/// incarnation of the replica has written a snapshot. Any thread. Throws std::runtime_error naming
/// file and reason.
void write_learner(const LearnerWrite& write);

struct SavedLearner {
  learner::TensorMap parameters, optimizer;
  std::int64_t updates = 0;
};

/// The state with which a replica starts: its own part, or another replica's if it has none; then
/// `own` replaces the other's random streams. Throws std::runtime_error naming the file.
SavedLearner read_learner(const std::filesystem::path& folder, int replica,
                          const learner::TensorMap& own);

} // namespace troupe::actors
