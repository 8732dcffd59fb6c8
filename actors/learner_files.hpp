#pragma once

#include <filesystem>
#include <string>

#include "actors/learner_actor.hpp"

namespace troupe::actors {

/// The state as it is, copied: what happens to the live one later changes nothing.
LearnerWrite captured(const LearnerState& state, const std::filesystem::path& folder,
                      bool snapshot);

/// Writes a part of a checkpoint into its folder, or a snapshot to folder/<updates>, whole, in
/// place of all that are there. Any thread. Throws std::runtime_error naming file and reason.
void write_learner(const LearnerWrite& write);

struct SavedLearner {
  learner::TensorMap parameters, optimizer;
  std::int64_t updates = 0;
};

/// What a replica begins with: its own part, or that of another where it has none. Random streams
/// of another are left out, `own` takes their place. Throws std::runtime_error naming the file.
SavedLearner read_learner(const std::filesystem::path& folder, int replica,
                          const learner::TensorMap& own);

} // namespace troupe::actors
