#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::env {

/// Appends the bytes of `value` to a saved state. A saved state can only be loaded on the same
/// machine by the same build.
template <typename T>
void save_value(std::vector<std::byte>& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

/// Appends the number of elements, then the elements.
template <typename T>
void save_array(std::vector<std::byte>& out, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  save_value(out, static_cast<std::uint64_t>(values.size()));
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Reads a value written by save_value() and moves `in` past it. Throws std::invalid_argument if
/// the state ends too early.
template <typename T>
void load_value(std::span<const std::byte>& in, T& value, const char* what) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (in.size() < sizeof(T))
    throw std::invalid_argument(std::string("saved environment state ends before its ") + what
                                + ": it is truncated, or was saved with another configuration");
  std::memcpy(&value, in.data(), sizeof(T));
  in = in.subspan(sizeof(T));
}

/// Reads an array that must have exactly `values.size()` elements.
template <typename T>
void load_array(std::span<const std::byte>& in, std::span<T> values, const char* what) {
  std::uint64_t count = 0;
  load_value(in, count, what);
  if (count != values.size() || in.size() < values.size_bytes())
    throw std::invalid_argument(std::string("saved environment state has ") + std::to_string(count)
                                + " numbers of " + what + " and this environment "
                                + std::to_string(values.size())
                                + ": it is truncated, or was saved with another configuration");
  if (!values.empty()) // memcpy must not get a null pointer, even for 0 bytes
    std::memcpy(values.data(), in.data(), values.size_bytes());
  in = in.subspan(values.size_bytes());
}

} // namespace troupe::env
