#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// Result of replaying a recording made by tests/golden/make_classic.py; each difference is one
/// line.
struct ClassicReplay {
  int compared = 0;        // steps, or pairs of state and action
  double state_error = 0;  // largest difference of any state variable
  double reward_error = 0; // largest difference of any reward
  std::vector<std::string> differences;
};

/// Throws std::runtime_error if the file is missing or has unexpected arrays.
ClassicReplay replay_classic(const std::string& folder, const std::string& recording);

/// Names of the recordings in a folder, sorted.
std::vector<std::string> classic_recordings(const std::string& folder);

} // namespace troupe::env
