#pragma once

#include <cstddef>
#include <string>

#include "env/spec.hpp"

namespace troupe::env {

/// True for float64 and float32.
bool is_floating(ElementType type);

/// Converts a float64 or float32 array at `in` to float32 at `out`. Throws std::runtime_error
/// naming environment and array if a number is not finite or exceeds the range of float32. Does not
/// allocate otherwise.
void narrow_to_float32(const std::string& environment, const ArraySpec& array, const std::byte* in,
                       std::byte* out);

} // namespace troupe::env
