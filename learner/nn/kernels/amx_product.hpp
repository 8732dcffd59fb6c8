#pragma once

#include <cstdint>

#include "learner/nn/kernels/strided.hpp"

namespace troupe::learner {

// Products with AMX: the factors are rounded to bfloat16, sums are float32. Only for processors
// where env::executes_amx() is true. An element's value does not depend on m, so rows may be split
// over threads without changing a bit.
//
// Each number of a factor has one or two parts: the number in bfloat16, and what that leaves of it
// in bfloat16. With two parts, a product is the sum of three; the fourth, of what was left of both
// factors, is smaller than 2^-16 of the product and left out.

/// A matrix of bfloat16 with dense rows. `row`, from one row to the next, is a multiple of
/// kAmxColumns that has room for its columns; the rest of a row must be 0. Memory must extend to a
/// multiple of kAmxRows rows.
struct RoundedRows {
  const std::uint16_t* data;
  std::int64_t row;
};
constexpr std::int64_t kAmxRows = 32, kAmxColumns = 32;

/// Packs b[k, n], of which one stride must be 1, in the order in which multiply_amx() reads it;
/// packed: amx_packed_size(k, n) times `parts` numbers, aligned to 64 bytes.
void pack_amx(const Strided& b, std::int64_t k, std::int64_t n, int parts, std::uint16_t* packed);
/// In one part.
void pack_amx(const RoundedRows& b, std::int64_t k, std::int64_t n, std::uint16_t* packed);
std::int64_t amx_packed_size(std::int64_t k, std::int64_t n);

/// c[m, n] = a[m, k] * packed[k, n]
struct AmxProduct {
  const std::uint16_t* packed;
  int parts = 1;
  const float* bias; // [n], added if not null and `adds` is false
  bool adds;         // adds to c
  float* c;
  std::int64_t c_row; // from one row of c to the next
  std::int64_t m, n, k;
};

/// One stride of `a` must be 1. scratch: amx_scratch_size(k) times product.parts numbers, aligned
/// to 64 bytes.
void multiply_amx(const Strided& a, const AmxProduct& product, std::uint16_t* scratch);
std::int64_t amx_scratch_size(std::int64_t k);
/// In one part.
void multiply_amx(const RoundedRows& a, const AmxProduct& product);
/// c[m, n] = a[k, m]^T * packed[k, n], in one part. scratch: amx_transposed_size(m, k) numbers,
/// aligned to 64 bytes.
void multiply_transposed_amx(const RoundedRows& a, const AmxProduct& product,
                             std::uint16_t* scratch);
std::int64_t amx_transposed_size(std::int64_t m, std::int64_t k);

} // namespace troupe::learner
