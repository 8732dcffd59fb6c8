#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learner::data {

/// Parses a whole number, which white space may follow.
std::optional<std::int64_t> whole_number_in(std::string text);

/// Expands a pattern such as "name-{000..009}.tar"; a name without braces stands for itself. Throws
/// std::invalid_argument naming the pattern and the rule.
std::vector<std::string> shard_names(const std::string& pattern);

} // namespace troupe::learner::data
