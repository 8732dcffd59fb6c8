#pragma once

#include <array>
#include <functional>

#include "env/physics.hpp"

namespace troupe::env {

/// Calls `draw`, which sets positions, until nothing touches. Afterwards derived quantities other
/// than places are stale, as at the end of any initialize_episode(). Throws std::runtime_error when
/// no draw was free.
void draw_until_free(Physics& physics, const std::function<void()>& draw);

using Quaternion = std::array<double, 4>; // w, x, y, z; of length 1

/// Puts the free body whose first position is qpos[address] at (x, y), in metres, and lifts it from
/// height 0 by centimetres until nothing of the model touches anything; all else of the model is
/// put into its default state, as dm_control does. Throws std::runtime_error beyond 100 metres.
void place_above_ground(Physics& physics, int address, double x, double y,
                        const Quaternion& orientation);

} // namespace troupe::env
