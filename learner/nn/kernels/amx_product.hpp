#pragma once

#include <cstdint>

namespace troupe::learner {

/// A float32 matrix whose element (i, j) is at data[i * row + j * column].
struct Strided {
  const float* data;
  std::int64_t row;
  std::int64_t column;
};

// Products with AMX: the factors are rounded to bfloat16, sums are float32. One of the strides of a
// factor must be 1. Only for processors where env::executes_amx() is true. An element's value does
// not depend on m, so rows may be split over threads without changing a bit.

/// Rounds b[k, n] to bfloat16, in the order in which multiply_amx() reads it; packed:
/// amx_packed_size(k, n) numbers, aligned to 64 bytes.
void pack_amx(const Strided& b, std::int64_t k, std::int64_t n, std::uint16_t* packed);
std::int64_t amx_packed_size(std::int64_t k, std::int64_t n);

/// c[m, n] = a[m, k] * b (+ bias[n] if not null); c_row: the stride of c's rows. scratch:
/// amx_scratch_size(k) numbers, aligned to 64 bytes.
void multiply_amx(const Strided& a, const std::uint16_t* packed, const float* bias, float* c,
                  std::int64_t c_row, std::int64_t m, std::int64_t n, std::int64_t k,
                  std::uint16_t* scratch);
std::int64_t amx_scratch_size(std::int64_t k);

} // namespace troupe::learner
