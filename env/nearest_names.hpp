#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::env {

/// Up to `count` of `names` nearest to `name` by edit distance, for messages: "did you mean …".
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names,
                                       std::size_t count = 3);

} // namespace troupe::env
