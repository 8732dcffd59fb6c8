#include <cmath>
#include <numbers>

#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

/// The target's size and position are fields of the model, so each environment has its own.
class Reacher final : public Task {
public:
  Reacher(Physics& physics, double target_size)
      : target_(physics.id(mjOBJ_GEOM, "target")),
        finger_(physics.id(mjOBJ_GEOM, "finger")),
        target_size_(target_size) {
    physics.own_array("geom_size");
    physics.own_array("geom_pos");
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {float64_array("position", {2}), float64_array("to_target", {2}),
            float64_array("velocity", {2})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    physics.own_array("geom_size")[index(target_, 0)] = target_size_;
    randomize_joints(physics, random);
    const double angle = random.uniform(0, 2 * std::numbers::pi);
    const double radius = random.uniform(.05, .20);
    const auto position = physics.own_array("geom_pos");
    position[index(target_, 0)] = radius * std::sin(angle);
    position[index(target_, 1)] = radius * std::cos(angle);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(physics.data().qpos, 2);
    writer.put(to_target(physics, 0));
    writer.put(to_target(physics, 1));
    writer.put(physics.data().qvel, 2);
  }

  double reward(const Physics& physics) const override {
    const double* size = physics.model().geom_size;
    const double radii = size[index(target_, 0)] + size[index(finger_, 0)];
    const double x = to_target(physics, 0);
    const double y = to_target(physics, 1);
    return tolerance(std::sqrt(x * x + y * y), {.lower = 0, .upper = radii});
  }

private:
  static std::size_t index(int geom, int axis) { return static_cast<std::size_t>(3 * geom + axis); }

  double to_target(const Physics& physics, int axis) const {
    const double* position = physics.data().geom_xpos;
    return position[index(target_, axis)] - position[index(finger_, axis)];
  }

  int target_;
  int finger_;
  double target_size_; // metres
};

const TaskInfo kReacherTasks[] = {
    {"reacher_easy", "reacher.xml", "", nullptr, 20, 0, &make_task_of<Reacher, .05>},
    {"reacher_hard", "reacher.xml", "", nullptr, 20, 0, &make_task_of<Reacher, .015>},
};

} // namespace

std::span<const TaskInfo> reacher_tasks() {
  return kReacherTasks;
}

} // namespace troupe::env
