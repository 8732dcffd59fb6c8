#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr const char* kJoints[] = {"tail1",         "tail_twist",     "tail2",
                                   "finright_roll", "finright_pitch", "finleft_roll",
                                   "finleft_pitch"};
constexpr double kJointSpread = .2; // of the initial joint angles in either direction, radians

/// The target's colour or position is a field of the model, so each environment has its own.
class Fish final : public Task {
public:
  Fish(Physics& physics, bool swim)
      : root_(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, "root")]),
        torso_(physics.id(mjOBJ_BODY, "torso")),
        mouth_(physics.id(mjOBJ_GEOM, "mouth")),
        target_(physics.id(mjOBJ_GEOM, "target")),
        swim_(swim) {
    for (const char* joint : kJoints)
      joints_.push_back(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, joint)]);
    if (swim_)
      physics.own_array("geom_pos");
    else
      physics.own_float_array("geom_rgba");
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    std::vector<ArraySpec> all{float64_array("joint_angles", {std::ssize(joints_)}),
                               float64_array("upright", {})};
    if (swim_)
      all.push_back(float64_array("target", {3}));
    all.push_back(float64_array("velocity", {std::ssize(velocities(physics))}));
    return all;
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    random_direction({physics.data().qpos + root_ + 3, 4}, random);
    for (const int joint : joints_)
      physics.data().qpos[joint] = random.uniform(-kJointSpread, kJointSpread);
    if (!swim_) {
      physics.own_float_array("geom_rgba")[static_cast<std::size_t>(4 * target_ + 3)] = 0;
      return;
    }
    const auto place = physics.own_array("geom_pos").subspan(static_cast<std::size_t>(3 * target_));
    place[0] = random.uniform(-.4, .4);
    place[1] = random.uniform(-.4, .4);
    place[2] = random.uniform(.1, .3);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    for (const int joint : joints_)
      writer.put(physics.data().qpos[joint]);
    writer.put(upright(physics));
    if (swim_) {
      double target[3];
      mouth_to_target(physics, target);
      writer.put(target, 3);
    }
    writer.put(velocities(physics));
  }

  double reward(const Physics& physics) const override {
    if (!swim_)
      return tolerance(upright(physics), {.lower = 1, .upper = 1, .margin = 1});
    const double* sizes = physics.model().geom_size;
    const double radii = sizes[3 * mouth_] + sizes[3 * target_];
    double target[3];
    mouth_to_target(physics, target);
    const double in_target =
        tolerance(mju_norm3(target), {.lower = 0, .upper = radii, .margin = 2 * radii});
    return (7 * in_target + .5 * (upright(physics) + 1)) / 8;
  }

private:
  double upright(const Physics& physics) const { return body_axis(physics, torso_, kZz); }

  /// The vector from the mouth to the target in the mouth's frame, in metres.
  void mouth_to_target(const Physics& physics, double (&out)[3]) const {
    const mjData& data = physics.data();
    double global[3];
    mju_sub3(global, data.geom_xpos + 3 * target_, data.geom_xpos + 3 * mouth_);
    mju_mulMatTVec3(out, data.geom_xmat + 9 * mouth_, global);
  }

  int root_;
  int torso_;
  int mouth_;
  int target_;
  bool swim_;
  std::vector<int> joints_; // indices into qpos
};

const TaskInfo kFishTasks[] = {
    {"fish_upright", "fish.xml", "", nullptr, 40, .04, &make_task_of<Fish, false>},
    {"fish_swim", "fish.xml", "", nullptr, 40, .04, &make_task_of<Fish, true>},
};

} // namespace

std::span<const TaskInfo> fish_tasks() {
  return kFishTasks;
}

} // namespace troupe::env
