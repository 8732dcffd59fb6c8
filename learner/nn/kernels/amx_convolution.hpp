#pragma once

#include <cstdint>

namespace troupe::learner {

// Convolutions with AMX that read images in place, without patches. Images are bfloat16, and the
// channels of a pixel lie one behind the other. Only for processors where env::executes_amx() is
// true.

/// For each output pixel, a sum over blocks of 32 numbers of the input. Computes pixels in groups
/// of 32: memory must extend to a multiple of 32 pixels, of which the last are meaningless.
struct DirectConvolution {
  const std::uint16_t* input; // where the first output pixel reads
  std::int64_t step;          // from where one output pixel reads to where the next one does
  const std::int64_t* blocks; // where each block begins, from there
  std::int64_t block_count;
  const std::uint16_t* weight; // pack_amx() of [32 * block_count, channels]
  const float* bias;           // [channels]; null: none
  std::int64_t pixels;
  std::int64_t channels; // of the output; a multiple of 32
};

/// Writes the ReLU of the sums, [pixels, channels].
void convolve_relu(const DirectConvolution& convolution, std::uint16_t* out);
/// Writes the sums where `y` is above 0, and 0 elsewhere.
void convolve_masked(const DirectConvolution& convolution, const std::uint16_t* y,
                     std::uint16_t* out);

/// out[c, p] = rows[p, c]. The sizes are multiples of 32; `row` and `out_row`: from one row to the
/// next.
void transpose_rounded(const std::uint16_t* rows, std::int64_t row, std::int64_t count,
                       std::int64_t columns, std::uint16_t* out, std::int64_t out_row);

/// out = gradient where `y` is above 0, and 0 elsewhere, in bfloat16. count: a multiple of 32.
void mask_rounded(const float* gradient, const std::uint16_t* y, std::int64_t count,
                  std::uint16_t* out);

/// sums[columns] += those of the rows. columns: a multiple of 32.
void add_rows_rounded(const std::uint16_t* rows, std::int64_t count, std::int64_t columns,
                      float* sums);

} // namespace troupe::learner
