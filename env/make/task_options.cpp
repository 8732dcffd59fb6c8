#include "env/make/task_options.hpp"

#include <algorithm>

#include "env/classic/classic.hpp"
#include "env/goals/goals.hpp"
#include "env/gym/options.hpp"
#include "env/make/make.hpp"
#include "env/minatar/minatar.hpp"
#include "env/plugin/own_environments.hpp"

namespace troupe::env {

namespace {

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

} // namespace

std::vector<GymOption> task_options(const std::string& task) {
  if (is_one_of(linked_environments(), task)) // takes precedence over a built-in task
    return {};
  if (is_one_of(classic_names(), task))
    return classic_options(task);
  if (is_one_of(goal_task_names(), task))
    return goal_task_options(task);
  if (is_one_of(minatar_names(), task))
    return minatar_options(task);
  return is_one_of(gym_names(), task) ? gym_options(task) : std::vector<GymOption>{};
}

std::string option_problem(const std::string& task, const std::string& name) {
  std::vector<std::string> names;
  for (const GymOption& option : task_options(task))
    names.push_back(option.name);
  if (is_one_of(names, name))
    return "";
  if (!names.empty())
    return gym::unknown_option_text(task, names, name);
  if (task == "remote" || is_one_of(linked_environments(), task) || !is_environment(task))
    return "";
  return "'" + name + "' is given to " + task + "; tasks of the control suite have no options";
}

} // namespace troupe::env
