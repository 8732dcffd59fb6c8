#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/gradients/schedule.hpp"

namespace troupe::learner {

/// How a run trains any agent: keys of the block `learner` of an experiment.
struct TrainingConfig {
  /// The schedule of all of the agent's optimizers, by the number of updates that their parameters
  /// have received.
  struct LearningRate {
    std::string schedule = "constant"; // or "linear", "cosine"
    std::int64_t updates = 0;          // end of the decay, including the warm-up
    double final_fraction = 0;         // multiple of the agent's rates after the end
    std::int64_t warmup_updates = 0;   // linear, from 0

    /// Converts the keys, which must have no problems().
    LearningRateSchedule made() const;
  } learning_rate{};

  /// Resets of networks to new initial values (learners/trained_replica.hpp).
  struct Resets {
    std::int64_t period = 0;       // updates; 0: none
    std::int64_t last_update = 0;  // no resets after it; 0: no limit
    std::string what = "networks"; // or "last_layers"
  } resets{};

  /// Updates between two diagnoses of the networks, for the metrics; 0: none.
  std::int64_t diagnostics_period = 0;
  /// The names of the diagnostic metrics (SavedReplica::diagnosis()).
  static std::vector<std::string> diagnoses();

  /// Adds the keys of the block: "learning_rate.schedule", …
  void add_members(Members& members);
  /// Returns the violated rules, with keys relative to the block.
  std::vector<OptionProblem> problems() const;
};

} // namespace troupe::learner
