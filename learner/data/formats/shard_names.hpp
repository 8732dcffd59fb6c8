#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learner::data {

/// A whole number, white space after it allowed.
std::optional<std::int64_t> whole_number_in(std::string text);

/// The names that "name-{000..009}.tar" stands for; a name without braces stands for itself. Throws
/// std::invalid_argument naming it and the rule.
std::vector<std::string> shard_names(const std::string& pattern);

} // namespace troupe::learner::data
