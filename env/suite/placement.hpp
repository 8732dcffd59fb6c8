#pragma once

#include <array>
#include <functional>

#include "env/physics.hpp"

namespace troupe::env {

/// Calls `draw`, which sets positions, until there are no contacts. Derived quantities other than
/// positions are stale afterwards, as at the end of any initialize_episode(). Throws
/// std::runtime_error if no draw was free of contacts.
void draw_until_free(Physics& physics, const std::function<void()>& draw);

using Quaternion = std::array<double, 4>; // w, x, y, z; unit length

/// Resets the whole model to its default state, as dm_control does, and places the free body whose
/// first position is qpos[address] at (x, y), in metres. The body is lifted from height 0 in steps
/// of a centimetre until the model has no contacts. Throws std::runtime_error above 100 metres.
void place_above_ground(Physics& physics, int address, double x, double y,
                        const Quaternion& orientation);

} // namespace troupe::env
