#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// Where ours disagrees with a recording that tests/golden/make_classic.py made, one line each.
struct ClassicReplay {
  int compared = 0;        // steps, or pairs of state and action
  double state_error = 0;  // the largest difference of a state's numbers
  double reward_error = 0; // and of rewards
  std::vector<std::string> differences;
};

/// Throws std::runtime_error for a file that is missing or has other arrays.
ClassicReplay replay_classic(const std::string& folder, const std::string& recording);

/// Names of the recordings of a folder, sorted.
std::vector<std::string> classic_recordings(const std::string& folder);

} // namespace troupe::env
