#include "env/suite/tags.hpp"

#include <algorithm>
#include <string_view>

namespace troupe::env {

namespace {

constexpr std::string_view kBenchmarking[] = {
    "acrobot_swingup",
    "acrobot_swingup_sparse",
    "ball_in_cup_catch",
    "cartpole_balance",
    "cartpole_balance_sparse",
    "cartpole_swingup",
    "cartpole_swingup_sparse",
    "cheetah_run",
    "finger_spin",
    "finger_turn_easy",
    "finger_turn_hard",
    "fish_swim",
    "fish_upright",
    "hopper_hop",
    "hopper_stand",
    "humanoid_run",
    "humanoid_stand",
    "humanoid_walk",
    "manipulator_bring_ball",
    "pendulum_swingup",
    "point_mass_easy",
    "reacher_easy",
    "reacher_hard",
    "swimmer_swimmer15",
    "swimmer_swimmer6",
    "walker_run",
    "walker_stand",
    "walker_walk",
};
constexpr std::string_view kEasy[] = {"ball_in_cup_catch", "point_mass_easy", "reacher_easy"};
constexpr std::string_view kHard[] = {
    "dog_fetch",
    "manipulator_bring_ball",
    "manipulator_bring_peg",
    "manipulator_insert_ball",
    "manipulator_insert_peg",
    "stacker_stack_2",
    "stacker_stack_4",
};
constexpr std::string_view kPlain[] = {"dog_fetch", "dog_run", "dog_stand", "dog_trot", "dog_walk"};

template <std::size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

} // namespace

std::vector<std::string> suite_tags(const std::string& task) {
  std::vector<std::string> tags;
  if (contains(kBenchmarking, task))
    tags.emplace_back("benchmarking");
  if (contains(kEasy, task))
    tags.emplace_back("easy");
  if (contains(kHard, task))
    tags.emplace_back("hard");
  if (contains(kPlain, task))
    tags.emplace_back("no_reward_visualization");
  return tags;
}

} // namespace troupe::env
