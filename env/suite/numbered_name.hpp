#pragma once

#include <optional>
#include <string_view>

namespace troupe::env {

/// Removes a number from the start of `text` and returns it. It must be written without a sign or
/// leading zeros, with at most 6 digits. Otherwise returns nothing.
inline std::optional<int> take_number(std::string_view& text) {
  std::size_t digits = 0;
  int number = 0;
  while (digits < text.size() && digits < 7 && text[digits] >= '0' && text[digits] <= '9')
    number = 10 * number + (text[digits++] - '0');
  if (digits == 0 || digits > 6 || (digits > 1 && text[0] == '0'))
    return {};
  text.remove_prefix(digits);
  return number;
}

/// Removes `prefix` from the start of `text`. Returns false if `text` does not start with it.
inline bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

} // namespace troupe::env
