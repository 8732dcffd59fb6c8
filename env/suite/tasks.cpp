#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "env/nearest_names.hpp"
#include "env/suite/task.hpp"
#include "env/suite/task_names.hpp"

namespace troupe::env {

std::span<const TaskInfo> all_tasks() {
  static const std::vector<TaskInfo> table = [] {
    std::vector<TaskInfo> all;
    for (const auto domain :
         {acrobot_tasks(), ball_in_cup_tasks(), cartpole_tasks(), cheetah_tasks(), dog_tasks(),
          finger_tasks(), fish_tasks(), hopper_tasks(), humanoid_tasks(), humanoid_cmu_tasks(),
          lqr_tasks(), manipulator_tasks(), pendulum_tasks(), point_mass_tasks(), quadruped_tasks(),
          reacher_tasks(), stacker_tasks(), swimmer_tasks(), walker_tasks()})
      all.insert(all.end(), domain.begin(), domain.end());
    std::sort(all.begin(), all.end(),
              [](const TaskInfo& a, const TaskInfo& b) { return a.name < b.name; });
    return all;
  }();
  return table;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskInfo& task : all_tasks())
    names.emplace_back(task.name);
  return names;
}

TaskInfo find_task(const std::string& name) {
  for (const TaskInfo& task : all_tasks())
    if (name == task.name)
      return task;
  for (const auto find : {&find_lqr, &find_swimmer})
    if (auto task = find(name))
      return *std::move(task);
  std::string message = "task: '" + name + "' is not a known task; nearest:";
  for (const std::string& other : nearest_names(name, task_names()))
    message += " '" + other + "'";
  throw std::invalid_argument(message + " (`troupe list tasks` prints all)");
}

void Task::before_step(Physics& physics, std::span<const double> action) const {
  std::copy(action.begin(), action.end(), physics.data().ctrl);
}

void random_direction(std::span<double> values, Random& random) {
  double squares = 0;
  for (double& value : values) {
    value = random.normal();
    squares += value * value;
  }
  for (double& value : values)
    value /= std::sqrt(squares);
}

namespace {

/// Draws a rotation about a uniform axis by an angle uniform in [0, limit), in radians.
void draw_limited_turn(double* quaternion, double limit, Random& random) {
  double axis[3];
  random_direction(axis, random);
  mju_axisAngle2Quat(quaternion, axis, limit * random.uniform());
}

/// dm_control draws the four numbers of a free body's quaternion from [0, 1) and normalises them.
/// This is not uniform over rotations, but published results are for this distribution.
void draw_free_turn(double* quaternion, Random& random) {
  for (int i = 0; i < 4; ++i)
    quaternion[i] = random.uniform();
  mju_normalize4(quaternion);
}

} // namespace

void randomize_joints(Physics& physics, Random& random) {
  const mjModel& model = physics.model();
  for (int i = 0; i < static_cast<int>(model.njnt); ++i) {
    double* position = physics.data().qpos + model.jnt_qposadr[i];
    const double low = model.jnt_range[2 * i];
    const double high = model.jnt_range[2 * i + 1];
    const bool limited = model.jnt_limited[i];
    switch (model.jnt_type[i]) {
    case mjJNT_FREE:
      draw_free_turn(position + 3, random);
      break;
    case mjJNT_BALL:
      if (limited)
        draw_limited_turn(position, high, random);
      else
        random_direction({position, 4}, random);
      break;
    case mjJNT_HINGE:
      *position =
          limited ? random.uniform(low, high) : random.uniform(-std::numbers::pi, std::numbers::pi);
      break;
    case mjJNT_SLIDE:
      if (limited)
        *position = random.uniform(low, high);
      break;
    default:
      break;
    }
  }
}

} // namespace troupe::env
