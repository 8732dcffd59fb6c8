#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe::experiments {

/// Formats a value as YAML in block style and keeps the order of its keys. Quotes every string, so
/// that no parser reads one as a number, a date or a boolean.
std::string yaml_text(const nlohmann::ordered_json& value);

} // namespace troupe::experiments
