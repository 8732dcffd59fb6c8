#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym.hpp"

namespace troupe::env {

/// Makes a task whose observation contains a goal and whose spec says what reaching it is worth
/// (GoalSpec): "bit_flipping" (bit_flipping.hpp). `options` maps names to values as text. Throws
/// std::invalid_argument on an unknown task or option (with the nearest names) or a value that
/// breaks its rule.
std::unique_ptr<Environment> make_goal_task(const std::string& name,
                                            const std::map<std::string, std::string>& options = {});

/// The names of these tasks, sorted.
std::vector<std::string> goal_task_names();

/// The options of a task. Throws std::invalid_argument if there is no such task.
std::vector<GymOption> goal_task_options(const std::string& name);

} // namespace troupe::env
