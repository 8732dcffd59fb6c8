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

/// Moves `in` past its first `size` bytes and returns them. Throws std::invalid_argument if the
/// state ends too early.
inline std::span<const std::byte> take_bytes(std::span<const std::byte>& in, std::uint64_t size,
                                             const char* what) {
  if (in.size() < size)
    throw std::invalid_argument(std::string("saved environment state ends before its ") + what
                                + ": it is truncated, or was saved with another configuration");
  const auto taken = in.first(static_cast<std::size_t>(size));
  in = in.subspan(taken.size());
  return taken;
}

/// Reads a value written by save_value() and moves `in` past it. Throws as take_bytes() does.
template <typename T>
void load_value(std::span<const std::byte>& in, T& value, const char* what) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(&value, take_bytes(in, sizeof(T), what).data(), sizeof(T));
}

/// Returns the bytes that save_array() wrote and moves `in` past them. Throws as take_bytes() does.
inline std::span<const std::byte> load_bytes(std::span<const std::byte>& in, const char* what) {
  std::uint64_t size = 0;
  load_value(in, size, what);
  return take_bytes(in, size, what);
}

/// The same, for the text that save_array<char>() wrote.
inline std::string load_text(std::span<const std::byte>& in, const char* what) {
  const auto bytes = load_bytes(in, what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
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
