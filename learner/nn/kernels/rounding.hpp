#pragma once

#include <cstdint>

namespace troupe::learner {

/// How products round their float32 factors. Sums are float32 in any case.
enum class Rounding : std::uint8_t {
  none,
  one_part, // to bfloat16
  two_parts // to the sum of two bfloat16 numbers. With AMX only; an error is below 2^-15 of a
            // product
};

} // namespace troupe::learner
