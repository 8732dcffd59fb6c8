#include "env/suite/rewards.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr double kCheetahRunSpeed = 10; // metres/second: the reward is 1 from here on
constexpr int kSettlingSteps = 200;     // physics steps before an episode

class Cheetah final : public Task {
public:
  explicit Cheetah(Physics& physics) : speed_(physics.id(mjOBJ_SENSOR, "torso_subtreelinvel")) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return {float64_array("position", {std::ssize(positions(physics)) - 1}),
            float64_array("velocity", {std::ssize(velocities(physics))})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    const mjModel& model = physics.model();
    for (int i = 0; i < static_cast<int>(model.njnt); ++i)
      if (model.jnt_limited[i])
        physics.data().qpos[model.jnt_qposadr[i]] =
            random.uniform(model.jnt_range[2 * i], model.jnt_range[2 * i + 1]);
    physics.step(kSettlingSteps);
    physics.data().time = 0;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out); // the horizontal position is not observed
    writer.put(positions(physics).subspan(1));
    writer.put(velocities(physics));
  }

  double reward(const Physics& physics) const override {
    return tolerance(physics.sensor(speed_)[0], {.lower = kCheetahRunSpeed,
                                                 .upper = kInfinity,
                                                 .margin = kCheetahRunSpeed,
                                                 .sigmoid = Sigmoid::linear,
                                                 .value_at_margin = 0});
  }

private:
  int speed_;
};

const TaskInfo kCheetahTasks[] = {
    {"cheetah_run", "cheetah.xml", "", nullptr, 10, 0, &make_task_of<Cheetah>},
};

} // namespace

std::span<const TaskInfo> cheetah_tasks() {
  return kCheetahTasks;
}

} // namespace troupe::env
