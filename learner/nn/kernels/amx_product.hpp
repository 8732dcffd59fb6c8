#pragma once

#include <cstdint>

namespace troupe::learner {

// Products with AMX: the factors are rounded to bfloat16, sums are float32. Only for processors
// where env::executes_amx() is true. An element's value does not depend on m, so rows may be split
// over threads without changing a bit.

/// A float32 matrix whose element (i, j) is at data[i * row + j * column]. One stride must be 1.
struct Strided {
  const float* data;
  std::int64_t row;
  std::int64_t column;
};

/// A matrix of bfloat16 with dense rows. `row`, from one row to the next, is a multiple of
/// kAmxColumns that has room for its columns; the rest of a row must be 0. Memory must extend to a
/// multiple of kAmxRows rows.
struct RoundedRows {
  const std::uint16_t* data;
  std::int64_t row;
};
constexpr std::int64_t kAmxRows = 32, kAmxColumns = 32;

/// Packs b[k, n] in the order in which multiply_amx() reads it; packed: amx_packed_size(k, n)
/// numbers, aligned to 64 bytes.
void pack_amx(const Strided& b, std::int64_t k, std::int64_t n, std::uint16_t* packed);
void pack_amx(const RoundedRows& b, std::int64_t k, std::int64_t n, std::uint16_t* packed);
std::int64_t amx_packed_size(std::int64_t k, std::int64_t n);

/// c[m, n] = a[m, k] * packed[k, n]
struct AmxProduct {
  const std::uint16_t* packed;
  const float* bias; // [n], added if not null and `adds` is false
  bool adds;         // adds to c
  float* c;
  std::int64_t c_row; // from one row of c to the next
  std::int64_t m, n, k;
};

/// scratch: amx_scratch_size(k) numbers, aligned to 64 bytes.
void multiply_amx(const Strided& a, const AmxProduct& product, std::uint16_t* scratch);
std::int64_t amx_scratch_size(std::int64_t k);
void multiply_amx(const RoundedRows& a, const AmxProduct& product);

} // namespace troupe::learner
