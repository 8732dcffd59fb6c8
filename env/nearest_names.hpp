#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::env {

/// For "did you mean …" messages: the one of `names` that is nearest to `name` by edit distance,
/// and others at most one edit farther away. Returns at most `count` names, the nearest first.
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names,
                                       std::size_t count = 3);

} // namespace troupe::env
