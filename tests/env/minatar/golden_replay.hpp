#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// Where ours disagrees with a recording that tests/golden/make_minatar.py made, one line each.
struct MinAtarReplay {
  int compared = 0; // resets and steps
  int episodes = 0;
  double rewards = 0;       // their sum
  std::vector<int> actions; // how often each was given
  std::vector<std::string> differences;
};

/// Plays the game with the recorded actions and the random numbers that MinAtar drew, which must be
/// asked for in the same order and of the same kind. Throws std::runtime_error for a file that is
/// missing or has other arrays.
MinAtarReplay replay_minatar(const std::string& folder, const std::string& recording);

/// Names of the recordings of a folder, sorted.
std::vector<std::string> minatar_recordings(const std::string& folder);

} // namespace troupe::env
