#pragma once

#include <mujoco/mujoco.h>

#include <string>

namespace troupe::env {

/// For edits of the suite's models (ModelEdit): removes the named part, and everything attached to
/// a body, from the model of `file`. Throws std::runtime_error when the model has no such part.
void remove_part(mjSpec& spec, mjtObj type, const std::string& name, const std::string& file);

/// All sensors of one type; none is fine.
void remove_sensors(mjSpec& spec, mjtSensor type, const std::string& file);

} // namespace troupe::env
