#include "learner/nn/kernels/amx_convolution.hpp"

#if defined(__AMX_BF16__)
#include "learner/nn/kernels/amx_tiles.hpp"
#endif

namespace troupe::learner {

#if defined(__AMX_BF16__)

namespace {

using namespace kernels_amx;

__mmask32 positive(__m512i rounded) {
  return _mm512_cmpgt_epi16_mask(rounded, __m512i{});
}

/// Sums for 32 pixels and 32 channels, [32, 32]. `one` and `two`: columns of tiles of the weight.
void sum_block(const DirectConvolution& c, const std::uint16_t* input, const std::uint16_t* one,
               const float* bias, float* sums) {
  const std::uint16_t* two = one + c.block_count * kTile;
  const Index row_bytes = c.step * 2;
  if (bias == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, bias, 0);
    _tile_loadd(1, bias + 16, 0);
    _tile_loadd(2, bias, 0);
    _tile_loadd(3, bias + 16, 0);
  }
  for (Index b = 0; b < c.block_count; ++b) {
    const std::uint16_t* block = input + c.blocks[b];
    _tile_loadd(4, block, row_bytes);
    _tile_loadd(6, one + b * kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, two + b * kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, block + kTileRows * c.step, row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, kSide * 4);
  _tile_stored(1, sums + 16, kSide * 4);
  _tile_stored(2, sums + 16 * kSide, kSide * 4);
  _tile_stored(3, sums + 16 * kSide + 16, kSide * 4);
  finish_writes();
}

/// Calls finish(sums of a pixel's 32 channels, place of the first one in the output).
template <class Finish>
void convolve(const DirectConvolution& c, const Finish& finish) {
  alignas(64) float sums[kSide * kSide];
  const Tiles tiles;
  finish_writes();
  for (Index p = 0; p < c.pixels; p += kSide)
    for (Index j = 0; j < c.channels; j += kSide) {
      sum_block(c, c.input + p * c.step, c.weight + j / kColumns * c.block_count * kTile,
                c.bias == nullptr ? nullptr : c.bias + j, sums);
      for (Index i = 0; i < kSide; ++i)
        finish(sums + i * kSide, (p + i) * c.channels + j);
    }
}

} // namespace

void convolve_relu(const DirectConvolution& c, std::uint16_t* out) {
  const Vector none{};
  convolve(c, [&](const float* sums, Index at) {
    _mm512_storeu_si512(out + at, pairs(larger(load(sums), none), larger(load(sums + 16), none)));
  });
}

void convolve_masked(const DirectConvolution& c, const std::uint16_t* y, std::uint16_t* out) {
  convolve(c, [&](const float* sums, Index at) {
    _mm512_storeu_si512(out + at, _mm512_maskz_mov_epi16(positive(_mm512_loadu_si512(y + at)),
                                                         pairs(load(sums), load(sums + 16))));
  });
}

void transpose_rounded(const std::uint16_t* rows, Index row, Index count, Index columns,
                       std::uint16_t* out, Index out_row) {
  for (Index p = 0; p < count; p += 32)
    for (Index c = 0; c < columns; c += 32) {
      Vector first[16], second[16]; // pairs of rows, of 16 columns each
      for (Index q = 0; q < 16; ++q) {
        const __m512i even = _mm512_loadu_si512(rows + (p + 2 * q) * row + c);
        const __m512i odd = _mm512_loadu_si512(rows + (p + 2 * q + 1) * row + c);
        first[q] = reinterpret_cast<Vector>(interleaved(even, odd, false));
        second[q] = reinterpret_cast<Vector>(interleaved(even, odd, true));
      }
      transpose(first);
      transpose(second);
      for (Index i = 0; i < 16; ++i) {
        _mm512_storeu_ps(out + (c + i) * out_row + p, first[i]);
        _mm512_storeu_ps(out + (c + 16 + i) * out_row + p, second[i]);
      }
    }
}

void mask_rounded(const float* gradient, const std::uint16_t* y, Index count, std::uint16_t* out) {
  for (Index i = 0; i < count; i += 32)
    _mm512_storeu_si512(out + i,
                        _mm512_maskz_mov_epi16(positive(_mm512_loadu_si512(y + i)),
                                               pairs(load(gradient + i), load(gradient + i + 16))));
}

void add_rows_rounded(const std::uint16_t* rows, Index count, Index columns, float* sums) {
  for (Index c = 0; c < columns; c += 32) {
    Vector low = load(sums + c), high = load(sums + c + 16);
    for (Index i = 0; i < count; ++i) {
      const __m512i row = _mm512_loadu_si512(rows + i * columns + c);
      low += widened(row, false);
      high += widened(row, true);
    }
    store(sums + c, low);
    store(sums + c + 16, high);
  }
}

#else // other processors, on which nothing calls these

void convolve_relu(const DirectConvolution&, std::uint16_t*) {}
void convolve_masked(const DirectConvolution&, const std::uint16_t*, std::uint16_t*) {}
void transpose_rounded(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t,
                       std::uint16_t*, std::int64_t) {}
void mask_rounded(const float*, const std::uint16_t*, std::int64_t, std::uint16_t*) {}
void add_rows_rounded(const std::uint16_t*, std::int64_t, std::int64_t, float*) {}

#endif

} // namespace troupe::learner
