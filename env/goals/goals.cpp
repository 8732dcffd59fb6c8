#include "env/goals/goals.hpp"

#include <stdexcept>

#include "env/goals/bit_flipping.hpp"

namespace troupe::env {
namespace {

constexpr const char* kBitFlipping = "bit_flipping";

void require(const std::string& name) {
  if (name != kBitFlipping)
    throw std::invalid_argument("there is no task with goals '" + name.substr(0, 80)
                                + "'; there is 'bit_flipping'");
}

} // namespace

std::unique_ptr<Environment> make_goal_task(const std::string& name,
                                            const std::map<std::string, std::string>& options) {
  require(name);
  return std::make_unique<GameEnvironment<goals::BitFlipping>>(
      goals::BitFlipping(name, gym::GymOptionValues(name, goals::bit_flipping_options(), options)));
}

std::vector<std::string> goal_task_names() {
  return {kBitFlipping};
}

std::vector<GymOption> goal_task_options(const std::string& name) {
  require(name);
  return gym::describe(goals::bit_flipping_options());
}

} // namespace troupe::env
