#include <cmath>
#include <numbers>

#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

class Pendulum final : public Task {
public:
  explicit Pendulum(Physics& physics)
      : pole_(physics.id(mjOBJ_BODY, "pole")),
        upright_{.lower = std::cos(8 * std::numbers::pi / 180), .upper = 1} {}

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("orientation", {2}), float64_array("velocity", {1})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    physics.data().qpos[0] = random.uniform(-std::numbers::pi, std::numbers::pi);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(body_axis(physics, pole_, kZz));
    writer.put(body_axis(physics, pole_, kXz));
    writer.put(physics.data().qvel[0]);
  }

  double reward(const Physics& physics) const override {
    return tolerance(body_axis(physics, pole_, kZz), upright_);
  }

private:
  int pole_;
  Tolerance upright_;
};

const TaskInfo kPendulumTasks[] = {
    {"pendulum_swingup", "pendulum.xml", "", nullptr, 20, 0, &make_task_of<Pendulum>},
};

} // namespace

std::span<const TaskInfo> pendulum_tasks() {
  return kPendulumTasks;
}

} // namespace troupe::env
