#pragma once

#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// A joint of a model, in the model's order.
struct JointName {
  std::string name;
  std::string kind; // "free", "ball", "slide" or "hinge"
  std::string unit; // of its positions: "m", "rad", or "quaternion"
};

/// Names of a MuJoCo model; empty where an environment has none. An object without a name is
/// called after its number, "actuator 2".
struct ModelNames {
  std::vector<std::string> actuators;
  std::vector<JointName> joints;
};

ModelNames model_names(Environment& environment);

} // namespace troupe::env
