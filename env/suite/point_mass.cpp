#include <cmath>

#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr double kMostParallel = .9; // cosine between the directions of the two controls

/// In the hard task, each episode draws a direction for each control. The directions are the
/// coefficients of the two tendons, which are fields of the model.
class PointMass final : public Task {
public:
  PointMass(Physics& physics, bool random_directions)
      : mass_(physics.id(mjOBJ_GEOM, "pointmass")),
        target_(physics.id(mjOBJ_GEOM, "target")),
        random_directions_(random_directions) {
    if (random_directions_)
      physics.own_array("wrap_prm");
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("position", {2}), float64_array("velocity", {2})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    randomize_joints(physics, random);
    if (!random_directions_)
      return;
    const auto directions = physics.own_array("wrap_prm");
    random_direction(directions.first(2), random);
    do
      random_direction(directions.subspan(2, 2), random);
    while (std::abs(directions[0] * directions[2] + directions[1] * directions[3]) > kMostParallel);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(physics.data().qpos, 2);
    writer.put(physics.data().qvel, 2);
  }

  double reward(const Physics& physics) const override {
    const double target_size = physics.model().geom_size[3 * target_];
    const double* places = physics.data().geom_xpos;
    const double near_target = tolerance(mju_dist3(places + 3 * target_, places + 3 * mass_),
                                         {.lower = 0, .upper = target_size, .margin = target_size});
    const double control =
        mean_tolerance({physics.data().ctrl, 2},
                       {.margin = 1, .sigmoid = Sigmoid::quadratic, .value_at_margin = 0});
    return near_target * (control + 4) / 5;
  }

private:
  int mass_;
  int target_;
  bool random_directions_;
};

const TaskInfo kPointMassTasks[] = {
    {"point_mass_easy", "point_mass.xml", "", nullptr, 20, 0, &make_task_of<PointMass, false>},
    {"point_mass_hard", "point_mass.xml", "", nullptr, 20, 0, &make_task_of<PointMass, true>},
};

} // namespace

std::span<const TaskInfo> point_mass_tasks() {
  return kPointMassTasks;
}

} // namespace troupe::env
