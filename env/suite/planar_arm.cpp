#include "env/suite/planar_arm.hpp"

#include <cmath>
#include <numbers>

namespace troupe::env {

namespace {

constexpr const char* kJointNames[] = {"arm_root", "arm_shoulder", "arm_elbow", "arm_wrist",
                                       "finger",   "fingertip",    "thumb",     "thumbtip"};
constexpr const char* kTouchNames[] = {"palm_touch", "finger_touch", "thumb_touch",
                                       "fingertip_touch", "thumbtip_touch"};

} // namespace

int position_of(const Physics& physics, const std::string& joint) {
  return physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, joint)];
}

int velocity_of(const Physics& physics, const std::string& joint) {
  return physics.model().jnt_dofadr[physics.id(mjOBJ_JOINT, joint)];
}

PlanarArm::PlanarArm(const Physics& physics)
    : hand_(physics.id(mjOBJ_BODY, "hand")),
      finger_(position_of(physics, "finger")),
      thumb_(position_of(physics, "thumb")) {
  const mjModel& model = physics.model();
  for (std::size_t i = 0; i < kJoints; ++i) {
    const int joint = physics.id(mjOBJ_JOINT, kJointNames[i]);
    const bool limited = model.jnt_limited[joint];
    joints_[i] = {model.jnt_qposadr[joint], model.jnt_dofadr[joint],
                  limited ? model.jnt_range[2 * joint] : -std::numbers::pi,
                  limited ? model.jnt_range[2 * joint + 1] : std::numbers::pi};
  }
  for (std::size_t i = 0; i < kTouchSensors; ++i)
    touch_[i] = physics.id(mjOBJ_SENSOR, kTouchNames[i]);
}

void PlanarArm::randomize(Physics& physics, Random& random) const {
  double* positions = physics.data().qpos;
  for (const Joint& joint : joints_)
    positions[joint.position] = random.uniform(joint.low, joint.high);
  positions[finger_] = positions[thumb_];
}

std::vector<ArraySpec> PlanarArm::observations() const {
  return {float64_array("arm_pos", {kJoints, 2}), float64_array("arm_vel", {kJoints}),
          float64_array("touch", {kTouchSensors}), float64_array("hand_pos", {4})};
}

void PlanarArm::observe(const Physics& physics, ObservationWriter& writer) const {
  for (const Joint& joint : joints_) {
    writer.put(std::sin(physics.data().qpos[joint.position]));
    writer.put(std::cos(physics.data().qpos[joint.position]));
  }
  for (const Joint& joint : joints_)
    writer.put(physics.data().qvel[joint.velocity]);
  for (const int sensor : touch_)
    writer.put(std::log1p(physics.sensor(sensor)[0]));
  put_pose(physics, hand_, writer);
}

void put_place(const Physics& physics, int body, ObservationWriter& writer) {
  writer.put(physics.data().xpos[3 * body]);
  writer.put(physics.data().xpos[3 * body + 2]);
}

void put_pose(const Physics& physics, int body, ObservationWriter& writer) {
  put_place(physics, body, writer);
  writer.put(physics.data().xquat[4 * body]);
  writer.put(physics.data().xquat[4 * body + 2]);
}

double site_distance(const Physics& physics, int a, int b) {
  return mju_dist3(physics.data().site_xpos + 3 * a, physics.data().site_xpos + 3 * b);
}

} // namespace troupe::env
