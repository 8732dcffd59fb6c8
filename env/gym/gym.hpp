#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// Options of one of Gym's MuJoCo tasks by the names that Gymnasium's constructors give them,
/// values as text: "0.05"; "true" or "false"; "0.2,inf" for a range.
struct GymOptions {
  std::map<std::string, std::string> values{}; // options that differ from the task's defaults
  std::string models{}; // folder of Gym's XML files; empty: where the build found them
};

/// One option as documented: `rule` says which values it takes.
struct GymOption {
  std::string name;
  std::string default_value;
  std::string rule;
  std::string help;
};

/// One of Gym's MuJoCo tasks, "Ant-v5" and so on: float64 observations by name, in an order in
/// which one after another they are Gym's flat observation; the model's action bounds (actions
/// outside are clipped; Gym clips the torque and charges for the unclipped action). The last step
/// has discount 0 when the task terminates, 1 at the time limit. Throws std::invalid_argument
/// (unknown task or option with the nearest names, a value that breaks its rule, a model that lacks
/// what the task reads) or std::runtime_error (a model that is missing or does not compile).
std::unique_ptr<Environment> make_gym(const std::string& name, const GymOptions& options = {});

/// Names of Gym's tasks, sorted.
std::vector<std::string> gym_names();

/// Options of a task; those of its reward and episode first. Throws std::invalid_argument with the
/// nearest names when there is no such task.
std::vector<GymOption> gym_options(const std::string& name);

/// A part of a reward under the name that it has in Gymnasium's `info`.
struct RewardPart {
  const char* name; // "reward_forward"
  double value;
};

/// Parts of the last step's reward of an environment that make_gym() returned (0 before the first
/// step); valid until it is stepped again or dies. They add up to the reward, but for
/// HumanoidStandup's constant 1. Throws std::invalid_argument for another environment.
std::span<const RewardPart> gym_reward_parts(const Environment& environment);

} // namespace troupe::env
