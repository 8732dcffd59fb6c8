#pragma once

#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// A joint of a model, in the model's order.
struct JointName {
  std::string name;
  std::string kind; // "free", "ball", "slide" or "hinge"
  std::string unit; // unit of its positions: "m", "rad", or "quaternion"
};

/// The names in a MuJoCo model; empty if an environment has no model. An object without a name gets
/// one from its number, "actuator 2".
struct ModelNames {
  std::vector<std::string> actuators;
  std::vector<JointName> joints;
};

ModelNames model_names(Environment& environment);

} // namespace troupe::env
