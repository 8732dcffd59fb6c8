#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

namespace troupe::env {

/// Returns the parts as a list: "a, b, c", or "a, b or c" if `last` is " or ". `text` is a function
/// or a member that gives the text of a part, or its number.
template <typename Parts, typename Text = std::identity>
std::string joined(const Parts& parts, std::string_view last = ", ", const Text& text = {}) {
  const std::size_t count = std::size(parts);
  std::size_t at = 0;
  std::string list;
  for (const auto& part : parts) {
    if (at > 0)
      list += at + 1 == count ? last : std::string_view(", ");
    const auto& one = std::invoke(text, part);
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(one)>>)
      list += std::to_string(one);
    else
      list += one;
    ++at;
  }
  return list;
}

} // namespace troupe::env
