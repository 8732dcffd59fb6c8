#include "env/minatar/minatar.hpp"

#include <algorithm>

#include "env/gym/task_table.hpp"
#include "env/minatar/minatar_task.hpp"

namespace troupe::env {

using namespace minatar;

namespace {

struct MinAtarTask {
  std::string name; // "MinAtar/Breakout-v0"
  MinAtarGameRow game;
  std::vector<Action> actions;
};

const std::vector<MinAtarTask>& all_minatar_tasks() {
  static const std::vector<MinAtarTask> table = [] {
    std::vector<MinAtarTask> tasks;
    for (const MinAtarGameRow& game :
         {asterix(), breakout(), freeway(), seaquest(), space_invaders()}) {
      using enum Action;
      tasks.push_back({"MinAtar/" + game.name + "-v0", game, {none, left, up, right, down, fire}});
      tasks.push_back({"MinAtar/" + game.name + "-v1", game, game.minimal_actions});
    }
    std::ranges::sort(tasks, {}, &MinAtarTask::name);
    return tasks;
  }();
  return table;
}

const MinAtarTask& find_minatar_task(const std::string& name) {
  return gym::find_in(all_minatar_tasks(), name, "MinAtar");
}

} // namespace

std::unique_ptr<Environment> make_minatar(const std::string& name,
                                          const std::map<std::string, std::string>& options) {
  const MinAtarTask& task = find_minatar_task(name);
  return task.game.make(task.name, task.actions,
                        gym::GymOptionValues(task.name, minatar_option_rules(), options));
}

std::vector<std::string> minatar_names() {
  return gym::names_in(all_minatar_tasks());
}

std::vector<GymOption> minatar_options(const std::string& name) {
  find_minatar_task(name); // throws if there is no such task
  return gym::describe(minatar_option_rules());
}

} // namespace troupe::env
