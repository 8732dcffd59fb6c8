#pragma once

#include <string>

#include "env/golden/golden.hpp"

namespace troupe::env {

/// Recordings of the real Gymnasium, made by tests/golden/make_gym.py, which says what is in
/// them: <folder>/index.json and one <recording>.npz each. The recording "Ant-v5.weights" is of the
/// task "Ant-v5" with other options.

/// Whether a recording's name is that of one of Gym's tasks, so that check_gym_golden() is for it.
bool is_gym_recording(const std::string& recording);

/// Replays every episode and probe of the recording, and compares where episodes begin with its
/// samples of resets (two-sample Kolmogorov-Smirnov test of each coordinate). Compared are
/// observations, rewards and their parts, states, terminations and truncations. Throws
/// std::runtime_error when a file is missing or malformed.
GoldenReport check_gym_golden(const std::string& folder, const std::string& recording,
                              const std::string& models = {});

} // namespace troupe::env
