#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace troupe::env {

/// Parses all of `text` as a decimal number, without blanks or a plus sign, in any locale. Returns
/// nullopt if it is none, or T cannot represent it. Floating-point types may be "inf" and "nan".
template <typename T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional<T>(value) : std::nullopt;
}

/// Also returns nullopt for NaN and for numbers outside [least, most].
template <typename T>
std::optional<T> number_in(std::string_view text, std::type_identity_t<T> least,
                           std::type_identity_t<T> most) {
  const std::optional<T> value = number_in<T>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

} // namespace troupe::env
