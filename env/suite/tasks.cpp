#include <algorithm>
#include <numbers>
#include <stdexcept>
#include <string_view>

#include "env/make.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

std::span<const TaskInfo> all_tasks() {
  static const std::vector<TaskInfo> table = [] {
    std::vector<TaskInfo> all;
    for (const auto domain : {ball_in_cup_tasks(), cartpole_tasks(), cheetah_tasks(),
                              pendulum_tasks(), reacher_tasks(), walker_tasks()})
      all.insert(all.end(), domain.begin(), domain.end());
    std::sort(all.begin(), all.end(), [](const TaskInfo& a, const TaskInfo& b) {
      return std::string_view(a.name) < b.name;
    });
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

const TaskInfo& find_task(const std::string& name) {
  for (const TaskInfo& task : all_tasks())
    if (name == task.name)
      return task;
  std::string message = "task: '" + name + "' is not a task we have; nearest:";
  for (const std::string& other : nearest_names(name, task_names()))
    message += " '" + other + "'";
  throw std::invalid_argument(message + " (`troupe list tasks` prints all)");
}

void randomize_joints(Physics& physics, Random& random) {
  const mjModel& model = physics.model();
  for (int i = 0; i < static_cast<int>(model.njnt); ++i) {
    double& position = physics.data().qpos[model.jnt_qposadr[i]];
    const int type = model.jnt_type[i];
    if (type != mjJNT_HINGE && type != mjJNT_SLIDE)
      throw std::logic_error("model '" + physics.name()
                             + "' has a ball or free joint: its domain must place it itself");
    if (model.jnt_limited[i])
      position = random.uniform(model.jnt_range[2 * i], model.jnt_range[2 * i + 1]);
    else if (type == mjJNT_HINGE)
      position = random.uniform(-std::numbers::pi, std::numbers::pi);
  }
}

} // namespace troupe::env
