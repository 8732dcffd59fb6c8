#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// Options of one of Gym's MuJoCo tasks, with the names of the arguments of Gymnasium's
/// constructors. Values are text: "0.05", "true" or "false", or "0.2,inf" for a range.
struct GymOptions {
  std::map<std::string, std::string> values{}; // options that differ from the task's defaults
  std::string models{}; // folder of Gym's XML files; empty: the one that the build found
};

/// The documentation of an option. `rule` says which values it accepts.
struct GymOption {
  std::string name;
  std::string default_value;
  std::string rule;
  std::string help;
};

/// Makes one of Gym's MuJoCo tasks, such as "Ant-v5". Its float64 observations have names;
/// concatenated in their order, they are Gym's flat observation. The action bounds are the model's.
/// Actions outside the bounds are clipped, whereas Gym clips only the torque and charges for the
/// unclipped action. The last step has discount 0 if the task terminates, and 1 at the time limit.
///
/// Throws std::invalid_argument for an unknown task or option (with the nearest names), a value
/// that breaks its option's rule, or a model that lacks something that the task reads. Throws
/// std::runtime_error if the model is missing or does not compile.
std::unique_ptr<Environment> make_gym(const std::string& name, const GymOptions& options = {});

/// Returns the names of Gym's tasks, sorted.
std::vector<std::string> gym_names();

/// Returns the options of a task, starting with those of its reward and episode. Throws
/// std::invalid_argument with the nearest names if there is no such task.
std::vector<GymOption> gym_options(const std::string& name);

/// A part of a reward, with its name in Gymnasium's `info`.
struct RewardPart {
  const char* name; // such as "reward_forward"
  double value;
};

/// Returns the parts of the last step's reward, which are 0 before the first step. They add up to
/// the reward, except for HumanoidStandup's constant 1. The span is valid until the environment's
/// next step or destruction. Throws std::invalid_argument unless make_gym() made the environment.
std::span<const RewardPart> gym_reward_parts(const Environment& environment);

} // namespace troupe::env
