#pragma once

#include <cstdint>
#include <functional>

#include "env/environment.hpp"
#include "learner/acting/policy.hpp"
#include "learner/acting/return_points.hpp"

namespace troupe::learner {

/// Plays one episode without exploration noise and returns its undiscounted return. `after_step`
/// (may be empty) is called after the reset and after every agent step, for example to draw a video
/// frame. If it returns false, the episode ends early, with the return so far. `recorder` (may be
/// null) receives each step.
double play_episode(env::Environment& environment, Policy& policy, std::uint64_t seed,
                    const std::function<bool()>& after_step = {},
                    ReturnPointRecorder* recorder = nullptr);

} // namespace troupe::learner
