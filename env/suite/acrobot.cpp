#include <numbers>

#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

class Acrobot final : public Task {
public:
  Acrobot(Physics& physics, double margin)
      : upper_arm_(physics.id(mjOBJ_BODY, "upper_arm")),
        lower_arm_(physics.id(mjOBJ_BODY, "lower_arm")),
        target_(physics.id(mjOBJ_SITE, "target")),
        tip_(physics.id(mjOBJ_SITE, "tip")),
        near_target_{
            .lower = 0, .upper = physics.model().site_size[3 * target_], .margin = margin} {}

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("orientations", {4}), float64_array("velocity", {2})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    for (int i = 0; i < 2; ++i)
      physics.data().qpos[i] = random.uniform(-std::numbers::pi, std::numbers::pi);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    for (const MatrixEntry entry : {kXz, kZz})
      for (const int body : {upper_arm_, lower_arm_})
        writer.put(body_axis(physics, body, entry));
    writer.put(physics.data().qvel, 2);
  }

  double reward(const Physics& physics) const override {
    const double* places = physics.data().site_xpos;
    return tolerance(mju_dist3(places + 3 * target_, places + 3 * tip_), near_target_);
  }

private:
  int upper_arm_;
  int lower_arm_;
  int target_;
  int tip_;
  Tolerance near_target_; // of the distance between the tip and the target, metres
};

const TaskInfo kAcrobotTasks[] = {
    {"acrobot_swingup", "acrobot.xml", "", nullptr, 10, 0, &make_task_of<Acrobot, 1>},
    {"acrobot_swingup_sparse", "acrobot.xml", "", nullptr, 10, 0, &make_task_of<Acrobot, 0>},
};

} // namespace

std::span<const TaskInfo> acrobot_tasks() {
  return kAcrobotTasks;
}

} // namespace troupe::env
