#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::env {

/// For messages, "did you mean …": the one of `names` that is nearest to `name` by edit distance,
/// and what is at most one edit farther; `count` in all.
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names,
                                       std::size_t count = 3);

} // namespace troupe::env
