#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr double kWalkerStandHeight = 1.2; // of the torso, metres: the reward is 1 from here on
constexpr double kWalkerWalkSpeed = 1;     // metres/second
constexpr double kWalkerRunSpeed = 8;

class Walker final : public Task {
public:
  Walker(Physics& physics, double speed)
      : torso_(physics.id(mjOBJ_BODY, "torso")),
        velocity_(physics.id(mjOBJ_SENSOR, "torso_subtreelinvel")),
        bodies_(static_cast<int>(physics.model().nbody)),
        speed_(speed) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return {float64_array("orientations", {2 * (bodies_ - 1)}), float64_array("height", {}),
            float64_array("velocity", {std::ssize(velocities(physics))})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    randomize_joints(physics, random);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    for (int body = 1; body < bodies_; ++body) {
      writer.put(body_axis(physics, body, kXx));
      writer.put(body_axis(physics, body, kXz));
    }
    writer.put(height(physics));
    writer.put(velocities(physics));
  }

  double reward(const Physics& physics) const override {
    const double standing = tolerance(
        height(physics),
        {.lower = kWalkerStandHeight, .upper = kInfinity, .margin = kWalkerStandHeight / 2});
    const double upright = (1 + body_axis(physics, torso_, kZz)) / 2;
    const double stand_reward = (3 * standing + upright) / 4;
    if (speed_ == 0)
      return stand_reward;
    const double moving = tolerance(physics.sensor(velocity_)[0], {.lower = speed_,
                                                                   .upper = kInfinity,
                                                                   .margin = speed_ / 2,
                                                                   .sigmoid = Sigmoid::linear,
                                                                   .value_at_margin = .5});
    return stand_reward * (5 * moving + 1) / 6;
  }

private:
  double height(const Physics& physics) const { return physics.data().xpos[3 * torso_ + 2]; }

  int torso_;
  int velocity_;
  int bodies_;
  double speed_; // metres/second; 0: only stand
};

const TaskInfo kWalkerTasks[] = {
    {"walker_stand", "walker.xml", "", nullptr, 25, .025, &make_task_of<Walker, 0>},
    {"walker_walk", "walker.xml", "", nullptr, 25, .025, &make_task_of<Walker, kWalkerWalkSpeed>},
    {"walker_run", "walker.xml", "", nullptr, 25, .025, &make_task_of<Walker, kWalkerRunSpeed>},
};

} // namespace

std::span<const TaskInfo> walker_tasks() {
  return kWalkerTasks;
}

} // namespace troupe::env
