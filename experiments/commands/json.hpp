#pragma once

#include <cstdio>

#include <nlohmann/json.hpp>

namespace troupe::experiments::commands {

using Json = nlohmann::ordered_json;

/// Prints one line of JSON to standard output. Replaces bytes that are not valid UTF-8.
inline void print_json(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::fprintf(stdout, "%s\n", text.c_str());
}

} // namespace troupe::experiments::commands
