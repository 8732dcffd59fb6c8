#pragma once

// Reads and writes values in the saved states of writers.
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/writers/writer.hpp"

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

} // namespace troupe::replay
