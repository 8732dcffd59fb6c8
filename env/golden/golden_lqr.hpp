#pragma once

#include <string>

namespace troupe::env {

class Physics;

/// Gives `physics`, an LQR, the springs that the recording of `task` in `folder` was made with.
/// dm_control draws them when it makes the environment, so recordings do not contain them; they
/// follow from the seed in the folder's index.json (the generator is NumPy's Mersenne Twister).
/// Throws std::runtime_error if there is no such seed.
void set_recorded_springs(Physics& physics, const std::string& folder, const std::string& task);

} // namespace troupe::env
