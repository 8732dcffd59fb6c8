#pragma once

#include <string>

namespace troupe::env {

class Physics;

/// Gives `physics`, an LQR, the springs of the recording of `task` in `folder`. dm_control draws
/// them when it makes the environment, so that no recording holds them; they follow from the seed
/// in the folder's index.json (its generator is NumPy's Mersenne Twister). Throws
/// std::runtime_error when there is no such seed.
void set_recorded_springs(Physics& physics, const std::string& folder, const std::string& task);

} // namespace troupe::env
