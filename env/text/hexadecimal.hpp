#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::env {

/// Returns two lower-case hexadecimal digits per byte.
inline std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

} // namespace troupe::env
