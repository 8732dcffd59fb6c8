#pragma once

#include <cstdint>
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
/// In that case `own` replaces the other replica's random streams. Parameters are replica 0's,
/// unless the strategy's replicas have `own_parameters`. Throws std::runtime_error naming the file.
SavedLearner read_learner(const std::filesystem::path& folder, int replica,
                          const learner::TensorMap& own, bool own_parameters = false);

/// Loads what read_learner() returns into the replica and its context. Returns the number of
/// updates after which it was saved. Throws std::runtime_error if it does not fit.
std::int64_t load_learner(LearnerState& state, const std::filesystem::path& folder);

} // namespace troupe::actors
