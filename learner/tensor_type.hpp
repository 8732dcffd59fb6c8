#pragma once

#include <stdexcept>

#include <ATen/core/Tensor.h>

#include "env/spec.hpp"

namespace troupe::learner {

inline at::ScalarType tensor_type(env::ElementType type) {
  switch (type) {
  case env::ElementType::uint8:
    return at::kByte;
  case env::ElementType::float32:
    return at::kFloat;
  case env::ElementType::float64:
    return at::kDouble;
  case env::ElementType::int64:
    return at::kLong;
  }
  throw std::logic_error("no such element type");
}

} // namespace troupe::learner
