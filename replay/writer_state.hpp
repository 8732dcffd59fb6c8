#pragma once

// How the states of writers are written down and read back.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/writer.hpp"

namespace troupe::replay {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error("the state of a replay writer " + why);
}

template <typename T>
void put(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

template <typename T>
T take_value(std::span<const std::byte>& in) {
  if (in.size() < sizeof(T))
    refuse("is truncated");
  T value;
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return value;
}

/// A writer and how many rows its open episode has (0: none is open).
void save_episode(std::vector<std::byte>& out, std::int64_t rows, const Writer& writer);

/// Reads both back and returns the rows; of the open episode the newest `needed` are there. Throws
/// std::runtime_error as Writer::load_state(); nothing has changed then.
std::int64_t load_episode(std::span<const std::byte>& in, Writer& writer, std::int64_t needed);

} // namespace troupe::replay
