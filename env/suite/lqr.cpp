#include <cmath>
#include <numbers>
#include <stdexcept>

#include "env/suite/model_editing.hpp"
#include "env/suite/numbered_name.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

namespace {

constexpr const char* kLqrFile = "lqr.xml";
constexpr int kMostBodies = 100;
constexpr double kLeastStiffness = 15; // in newtons/metre
constexpr double kMostStiffness = 25;
constexpr double kControlCost = .1;
constexpr double kAtRest = 1e-6; // an episode ends when the norm of the state is below this

/// Adds a chain of masses on springs, each sliding relative to its parent. The first `motors`
/// masses have a motor.
void add_masses(mjSpec& spec, int bodies, int motors) {
  const mjsDefault* main = mjs_getSpecDefault(&spec);
  mjsBody* parent = required(mjs_findBody(&spec, "world"), kLqrFile, "world");
  for (int i = 0; i < bodies; ++i) {
    const std::string number = std::to_string(i);
    mjsBody* body = mjs_addBody(parent, main);
    body->pos[0] = .25;
    body->pos[2] = i == 0 ? .1 : 0;
    mjs_setName(body->element, ("body_" + number).c_str());
    mjsJoint* joint = mjs_addJoint(body, main);
    joint->stiffness[0] = (kLeastStiffness + kMostStiffness) / 2; // each episode draws its own
    joint->damping[0] = 0;
    mjs_setName(joint->element, ("joint_" + number).c_str());
    mjs_setName(mjs_addGeom(body, main)->element, ("geom_" + number).c_str());
    mjs_setName(mjs_addSite(body, main)->element, ("site_" + number).c_str());
    if (i < motors)
      add_motor(spec, "motor_" + number, "joint_" + number);
    parent = body;
  }
  for (int i = 0; i + 1 < bodies; ++i) { // visible, but without any effect
    mjsTendon* tendon = mjs_addTendon(&spec, main);
    mjs_setName(tendon->element, ("tendon_" + std::to_string(i)).c_str());
    for (const int end : {i, i + 1})
      mjs_wrapSite(tendon, ("site_" + std::to_string(end)).c_str());
  }
}

/// dm_control draws the springs when it makes an environment, from the seed of the task. Here they
/// are drawn at the start of each episode from the episode's seed, so that an episode is a function
/// of its seed. Over all seeds, the distribution of the springs is the same.
class Lqr final : public Task {
public:
  explicit Lqr(Physics& physics)
      : bodies_(static_cast<std::size_t>(physics.model().nq)),
        motors_(static_cast<int>(physics.model().nu)) {
    physics.own_array("jnt_stiffness");
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    const auto numbers = static_cast<std::int64_t>(bodies_);
    return {float64_array("position", {numbers}), float64_array("velocity", {numbers})};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    for (double& stiffness : physics.own_array("jnt_stiffness"))
      stiffness = random.uniform(kLeastStiffness, kMostStiffness);
    const std::span<double> position(physics.data().qpos, bodies_);
    random_direction(position, random);
    for (double& coordinate : position)
      coordinate *= std::numbers::sqrt2;
  }

  std::optional<double> termination(const Physics& physics) const override {
    const mjData& data = physics.data();
    const auto bodies = static_cast<int>(bodies_);
    const double squares =
        mju_dot(data.qpos, data.qpos, bodies) + mju_dot(data.qvel, data.qvel, bodies);
    return std::sqrt(squares) < kAtRest ? std::optional(0.0) : std::nullopt;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    ObservationWriter writer(out);
    writer.put(physics.data().qpos, bodies_);
    writer.put(physics.data().qvel, bodies_);
  }

  /// There is no lower bound.
  double reward(const Physics& physics) const override {
    const mjData& data = physics.data();
    const double state_cost = .5 * mju_dot(data.qpos, data.qpos, static_cast<int>(bodies_));
    const double control_cost = .5 * mju_dot(data.ctrl, data.ctrl, motors_);
    return 1 - (state_cost + control_cost * kControlCost);
  }

private:
  std::size_t bodies_;
  int motors_;
};

TaskInfo lqr(int bodies, int motors) {
  return {"lqr_lqr_" + std::to_string(bodies) + "_" + std::to_string(motors),
          kLqrFile,
          std::to_string(bodies) + " masses " + std::to_string(motors) + " motors",
          [bodies, motors](mjSpec& spec) { add_masses(spec, bodies, motors); },
          kNoTimeLimit,
          0,
          &make_task_of<Lqr>};
}

const TaskInfo kLqrTasks[] = {lqr(2, 1), lqr(6, 2)};

} // namespace

std::span<const TaskInfo> lqr_tasks() {
  return kLqrTasks;
}

std::optional<TaskInfo> find_lqr(const std::string& name) {
  std::string_view rest = name;
  if (!take_prefix(rest, "lqr_lqr_"))
    return {};
  const std::optional<int> bodies = take_number(rest);
  if (!bodies || !take_prefix(rest, "_"))
    return {};
  const std::optional<int> motors = take_number(rest);
  if (!motors || !rest.empty())
    return {};
  if (*bodies < 1 || *bodies > kMostBodies || *motors < 1 || *motors > *bodies)
    throw std::invalid_argument(
        "task: '" + name + "': an LQR has 1 to " + std::to_string(kMostBodies)
        + " masses, and at least 1 motor but no more than masses; write for example"
          " 'lqr_lqr_6_2' for 6 masses and 2 motors");
  return lqr(*bodies, *motors);
}

} // namespace troupe::env
