#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// Returns dm_control's tags of a task: "benchmarking", "easy", "hard", "no_reward_visualization".
/// May be empty.
std::vector<std::string> suite_tags(const std::string& task);

} // namespace troupe::env
