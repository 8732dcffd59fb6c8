#include <cmath>

#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr double kHopperStandHeight = .6; // torso above foot, metres: the reward is 1 from here on
constexpr double kHopSpeed = 2;           // metres/second: the reward is 1 from here on

class Hopper final : public Task {
public:
  Hopper(Physics& physics, bool hopping)
      : torso_(physics.id(mjOBJ_BODY, "torso")),
        foot_(physics.id(mjOBJ_BODY, "foot")),
        velocity_(physics.id(mjOBJ_SENSOR, "torso_subtreelinvel")),
        touch_{physics.id(mjOBJ_SENSOR, "touch_toe"), physics.id(mjOBJ_SENSOR, "touch_heel")},
        hopping_(hopping) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return {float64_array("position", {std::ssize(positions(physics)) - 1}),
            float64_array("velocity", {std::ssize(velocities(physics))}),
            float64_array("touch", {2})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    randomize_joints(physics, random);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out); // the horizontal position is not observed
    writer.put(positions(physics).subspan(1));
    writer.put(velocities(physics));
    for (const int sensor : touch_)
      writer.put(std::log1p(physics.sensor(sensor)[0]));
  }

  double reward(const Physics& physics) const override {
    const double* places = physics.data().xipos;
    const double height = places[3 * torso_ + 2] - places[3 * foot_ + 2];
    const double standing = tolerance(height, {.lower = kHopperStandHeight, .upper = 2});
    if (hopping_)
      return standing
             * tolerance(physics.sensor(velocity_)[0], {.lower = kHopSpeed,
                                                        .upper = kInfinity,
                                                        .margin = kHopSpeed / 2,
                                                        .sigmoid = Sigmoid::linear,
                                                        .value_at_margin = .5});
    const double small_control = mean_tolerance(
        controls(physics), {.margin = 1, .sigmoid = Sigmoid::quadratic, .value_at_margin = 0});
    return standing * (small_control + 4) / 5;
  }

private:
  int torso_;
  int foot_;
  int velocity_;
  int touch_[2];
  bool hopping_;
};

const TaskInfo kHopperTasks[] = {
    {"hopper_stand", "hopper.xml", "", nullptr, 20, .02, &make_task_of<Hopper, false>},
    {"hopper_hop", "hopper.xml", "", nullptr, 20, .02, &make_task_of<Hopper, true>},
};

} // namespace

std::span<const TaskInfo> hopper_tasks() {
  return kHopperTasks;
}

} // namespace troupe::env
