#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "env/environment_config.hpp"
#include "experiments/config/experiment.pb.h"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments {

struct RecordOptions {
  std::filesystem::path checkpoint = {}; // the policy that plays; empty: random actions
  bool explore = false;                  // explore as in training instead of the best actions
  std::int64_t episodes = 0;             // 0: unlimited
  std::int64_t steps = 0;                // agent steps in total; 0: unlimited
  int environments = 1;                  // number played at once
  std::optional<std::uint64_t> seed = {};
  const std::atomic<bool>* stop = nullptr; // the recording ends early once it is true; may be null
  std::function<void(std::int64_t episode, double total_reward)> on_episode = {}; // may be empty
};

/// What an agent's continuous numbers become in the bare environment: clipped to ± `limit`, then
/// mapped from [-1, 1] to these bounds, or played as they are where the bounds are infinite.
struct PlayedActions {
  std::vector<double> minimum, maximum; // a recording's action_minimum and action_maximum
  double limit = 1;

  std::string limit_text() const; // a recording's "action_clip"
};
PlayedActions played_actions(const env::EnvironmentConfig& config);

/// Plays the experiment's environment and writes the episodes to `folder` as a recording, together
/// with its origin ("task", "policy", "run", …). With `steps`, or when stopped, the last episode of
/// each environment is cut short. Throws std::invalid_argument if neither episodes nor steps are
/// given or nothing was played, replay::StorageError, and the exceptions of evaluate_checkpoint().
void record_episodes(const Experiment& experiment, const std::filesystem::path& folder,
                     const RecordOptions& options);

} // namespace troupe::experiments
