#include <cmath>
#include <stdexcept>

#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr int kMostBallInCupTries = 10000; // about one draw in a hundred touches the cup

class BallInCup final : public Task {
public:
  explicit BallInCup(Physics& physics)
      : ball_x_(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, "ball_x")]),
        ball_z_(physics.model().jnt_qposadr[physics.id(mjOBJ_JOINT, "ball_z")]),
        ball_(physics.id(mjOBJ_BODY, "ball")),
        ball_geom_(physics.id(mjOBJ_GEOM, "ball")),
        target_(physics.id(mjOBJ_SITE, "target")) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return {float64_array("position", {std::ssize(positions(physics))}),
            float64_array("velocity", {std::ssize(velocities(physics))})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    for (int i = 0; i < kMostBallInCupTries; ++i) {
      physics.data().qpos[ball_x_] = random.uniform(-.2, .2);
      physics.data().qpos[ball_z_] = random.uniform(.2, .5);
      physics.forward_without_actuation();
      if (physics.data().ncon == 0)
        return;
    }
    throw std::runtime_error("model '" + physics.name() + "': found no free place for the ball in "
                             + std::to_string(kMostBallInCupTries) + " tries");
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(positions(physics));
    writer.put(velocities(physics));
  }

  double reward(const Physics& physics) const override {
    const mjData& data = physics.data();
    const mjModel& model = physics.model();
    const double ball_size = model.geom_size[3 * ball_geom_];
    for (const int axis : {0, 2}) {
      const double distance =
          std::abs(data.site_xpos[3 * target_ + axis] - data.xpos[3 * ball_ + axis]);
      if (!(distance < model.site_size[3 * target_ + axis] - ball_size))
        return 0;
    }
    return 1;
  }

private:
  int ball_x_;
  int ball_z_;
  int ball_;
  int ball_geom_;
  int target_;
};

const TaskInfo kBallInCupTasks[] = {
    {"ball_in_cup_catch", "ball_in_cup.xml", "", nullptr, 20, .02, &make_task_of<BallInCup>},
};

} // namespace

std::span<const TaskInfo> ball_in_cup_tasks() {
  return kBallInCupTasks;
}

} // namespace troupe::env
