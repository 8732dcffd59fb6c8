#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe::experiments {

/// A value as YAML in block style, its keys in their order. Strings stand in double quotes, so that
/// none of them is read as a number, a date or a boolean.
std::string yaml_text(const nlohmann::ordered_json& value);

} // namespace troupe::experiments
