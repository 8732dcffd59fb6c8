#include "env/classic/classic.hpp"

#include <algorithm>

#include "env/classic/classic_task.hpp"
#include "env/gym/task_table.hpp"

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
  return gym::find_in(all_classic_tasks(), name, "classic");
}

} // namespace

std::unique_ptr<Environment> make_classic(const std::string& name,
                                          const std::map<std::string, std::string>& options) {
  const ClassicTask& task = find_classic_task(name);
  return task.make(task.name, gym::GymOptionValues(task.name, task.options, options));
}

std::vector<std::string> classic_names() {
  return gym::names_in(all_classic_tasks());
}

std::vector<GymOption> classic_options(const std::string& name) {
  return gym::describe(find_classic_task(name).options);
}

} // namespace troupe::env
