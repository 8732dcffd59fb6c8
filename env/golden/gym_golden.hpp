#pragma once

#include <string>

#include "env/golden/golden.hpp"

namespace troupe::env {

/// Recordings of the real Gymnasium, made by tests/golden/make_gym.py, which describes their
/// contents: <folder>/index.json and one <recording>.npz each. The recording "Ant-v5.weights" is of
/// the task "Ant-v5" with other options.

/// Whether the recording is of one of Gym's tasks, so that check_gym_golden() can replay it.
bool is_gym_recording(const std::string& recording);

/// Replays every episode and probe of the recording and compares observations, rewards and their
/// parts, states, terminations and truncations. Also compares our initial states with the
/// recording's samples of resets (two-sample Kolmogorov-Smirnov test of each coordinate). Throws
/// std::runtime_error if a file is missing or malformed.
GoldenReport check_gym_golden(const std::string& folder, const std::string& recording,
                              const std::string& models = {});

} // namespace troupe::env
