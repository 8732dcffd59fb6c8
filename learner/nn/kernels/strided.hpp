#pragma once

#include <cstdint>

namespace troupe::learner {

/// A float32 matrix whose element (i, j) is at data[i * row + j * column].
struct Strided {
  const float* data;
  std::int64_t row;
  std::int64_t column;
};

} // namespace troupe::learner
