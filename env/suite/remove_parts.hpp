#pragma once

#include <mujoco/mujoco.h>

#include <string>

namespace troupe::env {

/// For edits of the suite's models (ModelEdit): removes the named part, for a body with everything
/// attached to it, from the model of `file`. Throws std::runtime_error if the model has no such
/// part.
void remove_part(mjSpec& spec, mjtObj type, const std::string& name, const std::string& file);

/// Removes all sensors of a type, if there are any.
void remove_sensors(mjSpec& spec, mjtSensor type, const std::string& file);

} // namespace troupe::env
