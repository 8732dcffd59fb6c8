#pragma once

#include <mujoco/mujoco.h>

#include <stdexcept>
#include <string>

namespace troupe::env {

/// For edits of the suite's models (ModelEdit): returns `part`, or throws std::runtime_error that
/// names the file and what it lacks if `part` is null.
template <typename T>
T* required(T* part, const std::string& file, const std::string& what) {
  if (part == nullptr)
    throw std::runtime_error(
        file + " has no " + what
        + ": it is not the control suite's file; use the one from the dm_control that "
          "experiments/packaging/install_dependencies.sh unpacks");
  return part;
}

/// Returns the element with this type and name. Throws std::runtime_error if the file lacks it.
inline mjsElement* required_element(mjSpec& spec, mjtObj type, const std::string& name,
                                    const std::string& file) {
  return required(mjs_findElement(&spec, type, name.c_str()), file,
                  std::string(mju_type2Str(type)) + " '" + name + "'");
}

/// Adds a motor to a joint, with the model's actuator defaults.
inline void add_motor(mjSpec& spec, const std::string& name, const std::string& joint) {
  mjsActuator* motor = mjs_addActuator(&spec, mjs_getSpecDefault(&spec));
  mjs_setToMotor(motor);
  motor->trntype = mjTRN_JOINT;
  mjs_setString(motor->target, joint.c_str());
  mjs_setName(motor->element, name.c_str());
}

} // namespace troupe::env
