#pragma once

#include <string>
#include <vector>

namespace troupe::env {

/// dm_control's tags of a task: "benchmarking", "easy", "hard", "no_reward_visualization"; may be
/// empty.
std::vector<std::string> suite_tags(const std::string& task);

} // namespace troupe::env
