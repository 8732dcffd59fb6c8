#include "env/make/model_names.hpp"

#include <mujoco/mujoco.h>

#include "env/physics.hpp"

namespace troupe::env {
namespace {

std::vector<std::string> named(const Physics& physics, mjtObj type, const std::string& kind) {
  std::vector<std::string> names = physics.names(type);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].empty())
      names[i] = kind + " " + std::to_string(i);
  return names;
}

JointName joint_named(const std::string& name, int type) {
  switch (type) {
  case mjJNT_FREE:
    return {name, "free", "m and quaternion"};
  case mjJNT_BALL:
    return {name, "ball", "quaternion"};
  case mjJNT_SLIDE:
    return {name, "slide", "m"};
  default:
    return {name, "hinge", "rad"};
  }
}

} // namespace

ModelNames model_names(Environment& environment) {
  const Physics* physics = environment.physics();
  if (physics == nullptr)
    return {};
  ModelNames made{.actuators = named(*physics, mjOBJ_ACTUATOR, "actuator"), .joints = {}};
  const auto joints = named(*physics, mjOBJ_JOINT, "joint");
  for (std::size_t i = 0; i < joints.size(); ++i)
    made.joints.push_back(joint_named(joints[i], physics->model().jnt_type[i]));
  return made;
}

} // namespace troupe::env
