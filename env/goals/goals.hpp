#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym.hpp"

namespace troupe::env {

/// A task whose observation states a goal and whose spec says what reaching it is worth (GoalSpec):
/// "bit_flipping" (bit_flipping.hpp). `options`: values as text by name. Throws
/// std::invalid_argument (unknown task or option with the nearest names, a value that breaks its
/// rule).
std::unique_ptr<Environment> make_goal_task(const std::string& name,
                                            const std::map<std::string, std::string>& options = {});

/// Names of these tasks, sorted.
std::vector<std::string> goal_task_names();

/// Options of a task. Throws std::invalid_argument when there is no such task.
std::vector<GymOption> goal_task_options(const std::string& name);

} // namespace troupe::env
