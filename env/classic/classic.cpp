#include "env/classic/classic.hpp"

#include <algorithm>
#include <stdexcept>

#include "env/classic/classic_task.hpp"
#include "env/nearest_names.hpp"

namespace troupe::env {

using namespace classic;

namespace {

const std::vector<ClassicTask>& all_classic_tasks() {
  static const std::vector<ClassicTask> table = [] {
    std::vector<ClassicTask> tasks{acrobot_v1(),      cart_pole_v1(),
                                   frozen_lake_v1(),  frozen_lake_8x8_v1(),
                                   mountain_car_v0(), mountain_car_continuous_v0(),
                                   pendulum_v1(),     taxi_v4()};
    std::ranges::sort(tasks, {}, &ClassicTask::name);
    return tasks;
  }();
  return table;
}

const ClassicTask& find_classic_task(const std::string& name) {
  for (const ClassicTask& task : all_classic_tasks())
    if (task.name == name)
      return task;
  std::string message = "there is no classic task '" + name.substr(0, 80) + "'; nearest:";
  for (const std::string& near : nearest_names(name, classic_names()))
    message += " '" + near + "'";
  throw std::invalid_argument(message);
}

} // namespace

std::unique_ptr<Environment> make_classic(const std::string& name,
                                          const std::map<std::string, std::string>& options) {
  const ClassicTask& task = find_classic_task(name);
  return task.make(task.name, gym::GymOptionValues(task.name, task.options, options));
}

std::vector<std::string> classic_names() {
  std::vector<std::string> names;
  for (const ClassicTask& task : all_classic_tasks())
    names.push_back(task.name);
  return names;
}

std::vector<GymOption> classic_options(const std::string& name) {
  std::vector<GymOption> options;
  for (const gym::GymOptionRule& rule : find_classic_task(name).options)
    options.push_back({rule.name, rule.default_value, rule_text(rule), rule.help});
  return options;
}

} // namespace troupe::env
