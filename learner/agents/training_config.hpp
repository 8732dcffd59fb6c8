#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/gradients/schedule.hpp"

namespace troupe::learner {

/// How a run trains, whatever its agent: keys of the block `learner` of an experiment.
struct TrainingConfig {
  /// Of every optimizer of the agent, by the updates that its parameters took.
  struct LearningRate {
    std::string schedule = "constant"; // or "linear", "cosine"
    std::int64_t updates = 0;          // until the end of the fall, the warm-up included
    double final_fraction = 0;         // of the agent's rates, from then on
    std::int64_t warmup_updates = 0;   // in a line from 0

    /// Of a configuration without problems().
    LearningRateSchedule made() const;
  } learning_rate{};

  /// Of networks to their first values, as if they were new (learners/trained_replica.hpp).
  struct Resets {
    std::int64_t period = 0;       // updates; 0: none
    std::int64_t last_update = 0;  // none behind it; 0: to the end
    std::string what = "networks"; // or "last_layers"
  } resets{};

  /// Updates between two diagnoses of networks, for the metrics; 0: none.
  std::int64_t diagnostics_period = 0;
  /// The metrics of diagnoses (SavedReplica::diagnosis()).
  static std::vector<std::string> diagnoses();

  /// The keys within the block: "learning_rate.schedule", …
  void add_members(Members& members);
  /// Their keys are within the block.
  std::vector<OptionProblem> problems() const;
};

} // namespace troupe::learner
