#pragma once

#include <string>
#include <vector>

#include "env/gym/gym.hpp"

namespace troupe::env {

/// The options of a task that needs no plug-in. Empty for tasks without options, for "remote", and
/// for linked-in environments, whose constructors read their options.
std::vector<GymOption> task_options(const std::string& task);

/// Why the task has no option `name`, with the nearest names. Empty if it has one, or if only its
/// constructor knows. Does not make the task.
std::string option_problem(const std::string& task, const std::string& name);

} // namespace troupe::env
