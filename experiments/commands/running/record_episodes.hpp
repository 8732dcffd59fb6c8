#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "experiments/config/experiment.pb.h"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments {

struct RecordOptions {
  std::filesystem::path checkpoint = {}; // whose policy plays; empty: random actions
  bool explore = false;                  // as in training, instead of the policy's best actions
  std::int64_t episodes = 0;             // 0: any number
  std::int64_t steps = 0;                // agent steps in all; 0: any number
  int environments = 1;                  // played at once
  std::optional<std::uint64_t> seed = {};
  const std::atomic<bool>* stop = nullptr; // ends early when it becomes true; may be null
  std::function<void(std::int64_t episode, double total_reward)> on_episode = {}; // may be empty
};

/// Plays the experiment's environment and writes the episodes as a recording to `folder`, with what
/// made it ("task", "policy", "run", …). With `steps`, and when stopped, the last episode of each
/// environment is cut. Throws std::invalid_argument if neither episodes nor steps are given or
/// nothing was played, replay::StorageError, and as evaluate_checkpoint() does.
void record_episodes(const Experiment& experiment, const std::filesystem::path& folder,
                     const RecordOptions& options);

} // namespace troupe::experiments
