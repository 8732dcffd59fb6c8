#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// Returns the names of the control suite's tasks, sorted.
std::vector<std::string> task_names();

} // namespace troupe::env
