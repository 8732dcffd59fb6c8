#include <cmath>
#include <numbers>
#include <stdexcept>

#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr int kMostFingerTries = 1000;    // to draw joints without a collision
constexpr double kSpinSpeed = 15;         // radians/second backwards: the reward is 1 from here on
constexpr double kSpinDamping = .03;      // of the spinner's hinge, in the spin task
constexpr double kEasyTargetRadius = .07; // metres
constexpr double kHardTargetRadius = .03;

/// The common part of the spin and turn tasks. All observations come from sensors.
class Finger : public Task {
public:
  explicit Finger(Physics& physics)
      : proximal_(physics.id(mjOBJ_SENSOR, "proximal")),
        distal_(physics.id(mjOBJ_SENSOR, "distal")),
        velocities_{physics.id(mjOBJ_SENSOR, "proximal_velocity"),
                    physics.id(mjOBJ_SENSOR, "distal_velocity"),
                    physics.id(mjOBJ_SENSOR, "hinge_velocity")},
        touch_{physics.id(mjOBJ_SENSOR, "touchtop"), physics.id(mjOBJ_SENSOR, "touchbottom")},
        tip_(physics.id(mjOBJ_SENSOR, "tip")),
        spinner_(physics.id(mjOBJ_SENSOR, "spinner")) {}

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("position", {4}), float64_array("velocity", {3}),
            float64_array("touch", {2})};
  }

protected:
  struct Planar {
    double x;
    double z;
  };

  /// The position of a framepos sensor's object relative to the spinner's hinge, in metres.
  Planar from_hinge(const Physics& physics, int sensor) const {
    const auto place = physics.sensor(sensor);
    const auto hinge = physics.sensor(spinner_);
    return {place[0] - hinge[0], place[2] - hinge[2]};
  }
  Planar tip(const Physics& physics) const { return from_hinge(physics, tip_); }
  double spin(const Physics& physics) const { return physics.sensor(velocities_[2])[0]; }

  void observe_state(const Physics& physics, ObservationWriter& writer) const {
    writer.put(physics.sensor(proximal_)[0]);
    writer.put(physics.sensor(distal_)[0]);
    const Planar end = tip(physics);
    writer.put(end.x);
    writer.put(end.z);
    for (const int sensor : velocities_)
      writer.put(physics.sensor(sensor)[0]);
    for (const int sensor : touch_)
      writer.put(std::log1p(physics.sensor(sensor)[0]));
  }

  static void randomize_until_free(Physics& physics, Random& random) {
    for (int i = 0; i < kMostFingerTries; ++i) {
      randomize_joints(physics, random);
      physics.forward_without_actuation();
      if (physics.data().ncon == 0)
        return;
    }
    throw std::runtime_error("model '" + physics.name() + "': every one of "
                             + std::to_string(kMostFingerTries) + " random poses had a collision");
  }

private:
  int proximal_;
  int distal_;
  int velocities_[3];
  int touch_[2];
  int tip_;
  int spinner_;
};

/// The hinge's damping and the colour that hides the sites are fields of the model.
class Spin final : public Finger {
public:
  explicit Spin(Physics& physics)
      : Finger(physics),
        hinge_dof_(physics.model().jnt_dofadr[physics.id(mjOBJ_JOINT, "hinge")]),
        hidden_{physics.id(mjOBJ_SITE, "target"), physics.id(mjOBJ_SITE, "tip")} {
    physics.own_array("dof_damping");
    physics.own_float_array("site_rgba");
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    for (const int site : hidden_)
      physics.own_float_array("site_rgba")[static_cast<std::size_t>(4 * site + 3)] = 0;
    physics.own_array("dof_damping")[static_cast<std::size_t>(hinge_dof_)] = kSpinDamping;
    randomize_until_free(physics, random);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_state(physics, writer);
  }

  double reward(const Physics& physics) const override { return spin(physics) <= -kSpinSpeed; }

private:
  int hinge_dof_;
  int hidden_[2];
};

/// The target's position and size are fields of the model, so each environment has its own.
class Turn final : public Finger {
public:
  Turn(Physics& physics, double target_radius)
      : Finger(physics),
        target_(physics.id(mjOBJ_SITE, "target")),
        target_sensor_(physics.id(mjOBJ_SENSOR, "target")),
        target_radius_(target_radius) {
    const double* anchor = physics.data().xanchor + 3 * physics.id(mjOBJ_JOINT, "hinge");
    hinge_ = {anchor[0], anchor[2]};
    const double* cap = physics.model().geom_size + 3 * physics.id(mjOBJ_GEOM, "cap1");
    ring_radius_ = cap[0] + cap[1] + cap[2];
    physics.own_array("site_pos");
    physics.own_array("site_size");
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    auto all = Finger::observations(physics);
    all.push_back(float64_array("target_position", {2}));
    all.push_back(float64_array("dist_to_target", {}));
    return all;
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    const double angle = random.uniform(-std::numbers::pi, std::numbers::pi);
    const auto site = static_cast<std::size_t>(3 * target_);
    const auto place = physics.own_array("site_pos");
    place[site] = hinge_.x + ring_radius_ * std::sin(angle);
    place[site + 2] = hinge_.z + ring_radius_ * std::cos(angle);
    physics.own_array("site_size")[site] = target_radius_;
    randomize_until_free(physics, random);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    observe_state(physics, writer);
    const Planar target = from_hinge(physics, target_sensor_);
    writer.put(target.x);
    writer.put(target.z);
    writer.put(distance(physics));
  }

  double reward(const Physics& physics) const override { return distance(physics) <= 0; }

private:
  /// The distance from the tip to the target's surface in metres; negative inside.
  double distance(const Physics& physics) const {
    const Planar target = from_hinge(physics, target_sensor_);
    const Planar end = tip(physics);
    const double x = target.x - end.x;
    const double z = target.z - end.z;
    return std::sqrt(x * x + z * z) - physics.model().site_size[3 * target_];
  }

  int target_;
  int target_sensor_;
  double target_radius_; // metres
  Planar hinge_{};
  double ring_radius_ = 0; // distance from the hinge to the target, metres
};

const TaskInfo kFingerTasks[] = {
    {"finger_spin", "finger.xml", "", nullptr, 20, .02, &make_task_of<Spin>},
    {"finger_turn_easy", "finger.xml", "", nullptr, 20, .02,
     &make_task_of<Turn, kEasyTargetRadius>},
    {"finger_turn_hard", "finger.xml", "", nullptr, 20, .02,
     &make_task_of<Turn, kHardTargetRadius>},
};

} // namespace

std::span<const TaskInfo> finger_tasks() {
  return kFingerTasks;
}

} // namespace troupe::env
