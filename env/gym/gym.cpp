#include "env/gym/gym.hpp"

#include <algorithm>
#include <stdexcept>

#include "env/gym/gym_environment.hpp"
#include "env/gym/task_table.hpp"

namespace troupe::env {

using namespace gym;

namespace {

const std::vector<GymTaskInfo>& all_gym_tasks() {
  static const std::vector<GymTaskInfo> table = [] {
    std::vector<GymTaskInfo> tasks{ant_v5(),
                                   half_cheetah_v5(),
                                   hopper_v5(),
                                   humanoid_v5(),
                                   humanoid_standup_v5(),
                                   inverted_double_pendulum_v5(),
                                   inverted_pendulum_v5(),
                                   pusher_v5(),
                                   reacher_v5(),
                                   swimmer_v5(),
                                   walker2d_v5()};
    std::ranges::sort(tasks, {}, &GymTaskInfo::name);
    return tasks;
  }();
  return table;
}

const GymTaskInfo& find_gym_task(const std::string& name) {
  return find_in(all_gym_tasks(), name, "Gym");
}

} // namespace

std::unique_ptr<Environment> make_gym(const std::string& name, const GymOptions& options) {
  return std::make_unique<GymEnvironment>(find_gym_task(name), options);
}

std::vector<std::string> gym_names() {
  return names_in(all_gym_tasks());
}

std::vector<GymOption> gym_options(const std::string& name) {
  return describe(find_gym_task(name).options);
}

std::span<const RewardPart> gym_reward_parts(const Environment& environment) {
  const auto* gym = dynamic_cast<const GymEnvironment*>(&environment);
  if (gym == nullptr)
    throw std::invalid_argument("environment " + environment.spec().name
                                + " was not made by make_gym() or is wrapped; its reward has no"
                                  " parts to read");
  return gym->reward_parts();
}

} // namespace troupe::env
