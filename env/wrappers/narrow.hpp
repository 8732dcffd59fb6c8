#pragma once

#include <cstddef>
#include <string>

#include "env/spec.hpp"

namespace troupe::env {

/// True for float64 and float32.
bool is_floating(ElementType type);

/// The elements of a float64 or float32 array at `in`, as float32 to `out`. A number that is not
/// finite, or leaves the range of float32, is a std::runtime_error naming environment and array.
/// Does not allocate.
void narrow_to_float32(const std::string& environment, const ArraySpec& array, const std::byte* in,
                       std::byte* out);

} // namespace troupe::env
