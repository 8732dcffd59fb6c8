#include "env/spec.hpp"

#include <stdexcept>

namespace troupe::env {

std::size_t element_bytes(ElementType type) {
  switch (type) {
  case ElementType::uint8:
    return 1;
  case ElementType::float32:
    return 4;
  case ElementType::float64:
  case ElementType::int64:
    return 8;
  }
  throw std::invalid_argument("element type " + std::to_string(static_cast<int>(type))
                              + " is none of ours");
}

const char* element_name(ElementType type) {
  switch (type) {
  case ElementType::uint8:
    return "uint8";
  case ElementType::float32:
    return "float32";
  case ElementType::float64:
    return "float64";
  case ElementType::int64:
    return "int64";
  }
  return "?";
}

std::size_t ArraySpec::elements() const {
  std::size_t count = 1;
  for (const std::int64_t n : shape)
    count *= static_cast<std::size_t>(n);
  return count;
}

std::size_t EnvironmentSpec::observation_offset(std::size_t index) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < index; ++i)
    offset += (observations[i].bytes() + 7) / 8 * 8;
  return offset;
}

std::size_t EnvironmentSpec::observation_bytes() const {
  return observations.empty()
             ? 0
             : observation_offset(observations.size() - 1) + observations.back().bytes();
}

} // namespace troupe::env
