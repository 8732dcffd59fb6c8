#include "env/wrappers/narrow.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace troupe::env {

namespace {

template <typename T>
void narrow(const std::string& environment, const ArraySpec& array, const std::byte* in,
            std::byte* out) {
  const std::size_t count = array.elements();
  for (std::size_t i = 0; i < count; ++i) {
    T value = 0;
    std::memcpy(&value, in + i * sizeof(T), sizeof value);
    const float kept = static_cast<float>(value);
    if (!std::isfinite(kept))
      throw std::runtime_error("environment " + environment + ": observation '" + array.name + "'["
                               + std::to_string(i) + "] is " + std::to_string(value)
                               + ", which is not a finite float32");
    std::memcpy(out + i * sizeof kept, &kept, sizeof kept);
  }
}

} // namespace

bool is_floating(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float64;
}

void narrow_to_float32(const std::string& environment, const ArraySpec& array, const std::byte* in,
                       std::byte* out) {
  if (array.type == ElementType::float64)
    narrow<double>(environment, array, in, out);
  else
    narrow<float>(environment, array, in, out);
}

} // namespace troupe::env
