#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::env {

/// Returns whether a JSON text is nested more than `most` deep. Copying, comparing or printing
/// deeply nested values overflows the stack. Takes time proportional to the text, unlike the
/// parser's callback, which takes its square.
inline bool is_deeper_than(std::string_view json, int most) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\' ? 1 : 0;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (depth > most)
      return true;
  }
  return false;
}

} // namespace troupe::env
