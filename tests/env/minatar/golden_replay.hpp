#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// Result of replaying a recording made by tests/golden/make_minatar.py; each difference is one
/// line.
struct MinAtarReplay {
  int compared = 0; // resets and steps
  int episodes = 0;
  double rewards = 0;       // sum of all rewards
  std::vector<int> actions; // how often each action was taken
  std::vector<std::string> differences;
};

/// Plays the game with the recorded actions and the random numbers that MinAtar drew; the game must
/// request them in the same order and of the same kind. Throws std::runtime_error if the file is
/// missing or has unexpected arrays.
MinAtarReplay replay_minatar(const std::string& folder, const std::string& recording);

/// Names of the recordings in a folder, sorted.
std::vector<std::string> minatar_recordings(const std::string& folder);

} // namespace troupe::env
