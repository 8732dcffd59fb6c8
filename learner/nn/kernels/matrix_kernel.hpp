#pragma once
// The matrix product: a tile of kRows x two vectors of c stays in registers while k runs.

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/vector_math.hpp"

namespace troupe::learner::TROUPE_KERNELS {

#if defined(__AVX512F__)
constexpr int kRows = 14; // 28 accumulators, two vectors of b, one broadcast: 31 of 32 registers
#else
constexpr int kRows = 6;
#endif
constexpr Index kPanel = 2 * kWidth;
constexpr Index kBlock = kProductBlock; // a panel with this many rows fits in the first-level cache
constexpr Index kCached = 1 << 13;      // floats of b that leave room in it for rows of a
constexpr Index kRowsTogether = 4 * kRows;

struct Tile {
  const float* a;
  Index a_row;
  Index a_column;
  const float* b; // a panel: [k][kPanel]
  const float* bias;
  bool accumulate;
  float* c;
  Index c_row;
  Index columns; // valid ones, <= kVectors * kWidth
  Index k;
};

template <int kCount, int kVectors, bool kTransposed>
static void multiply_tile(const Tile& t) {
  Vector sums[kCount][kVectors];
  for (int j = 0; j < kVectors; ++j) {
    Vector start = {};
    if (t.bias != nullptr) {
      const Index left = t.columns - j * kWidth;
      start = left >= kWidth ? load(t.bias + j * kWidth) : load_part(t.bias + j * kWidth, left, 0);
    }
    for (int i = 0; i < kCount; ++i)
      sums[i][j] = start;
  }
  // Three rows per base pointer, because pointers for more do not fit in the general registers.
  constexpr int kBases = (kCount + 2) / 3;
  const float* base[kBases];
  for (int g = 0; g < kBases; ++g)
    base[g] = t.a + 3 * g * (kTransposed ? 1 : t.a_row);
  const Index row = kTransposed ? 1 : t.a_row;
  const Index step = kTransposed ? t.a_column : 1;
  const float* b = t.b;
  for (Index p = 0; p < t.k; ++p, b += kPanel) {
    Vector right[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j)
      right[j] = load(b + j * kWidth);
#pragma GCC unroll 14
    for (int i = 0; i < kCount; ++i) {
      const Vector left = broadcast(base[i / 3][(i % 3) * row]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j)
        sums[i][j] += left * right[j];
    }
#pragma GCC unroll 5
    for (int g = 0; g < kBases; ++g)
      base[g] += step;
  }
  for (int i = 0; i < kCount; ++i)
    for (int j = 0; j < kVectors; ++j) {
      float* out = t.c + i * t.c_row + j * kWidth;
      const Index left = t.columns - j * kWidth;
      if (left >= kWidth)
        store(out, t.accumulate ? load(out) + sums[i][j] : sums[i][j]);
      else
        store_part(out, t.accumulate ? load_part(out, left, 0) + sums[i][j] : sums[i][j], left);
    }
}

template <int kCount, bool kTransposed>
static void multiply_rows(const Tile& tile, Index rows) {
  if constexpr (kCount > 0) {
    if (rows < kCount)
      return multiply_rows<kCount - 1, kTransposed>(tile, rows);
    if (tile.columns > kWidth)
      multiply_tile<kCount, 2, kTransposed>(tile);
    else
      multiply_tile<kCount, 1, kTransposed>(tile);
  }
}

static void multiply(const float* a, Index a_row, Index a_column, const float* packed,
                     const float* bias, bool accumulate, float* c, Index c_row, Index m, Index n,
                     Index k) {
  const Index blocks = k > kBlock ? (k + kBlock - 1) / kBlock : 1;
  const Index block = (k + blocks - 1) / blocks;
  for (Index k0 = 0; k0 == 0 || k0 < k; k0 += block) {
    const Index depth = k - k0 < block ? k - k0 : block;
    // If all panels of b stay cached, the rows of a stay cached too until each has met every panel.
    const Index together = depth * n <= kCached ? kRowsTogether : m;
    for (Index i0 = 0; i0 < m; i0 += together)
      for (Index n0 = 0; n0 < n; n0 += kPanel) {
        const Index columns = n - n0 < kPanel ? n - n0 : kPanel;
        for (Index i = i0; i < m && i < i0 + together; i += kRows) {
          const Tile tile = {a + i * a_row + k0 * a_column,
                             a_row,
                             a_column,
                             packed + n0 * k + k0 * kPanel,
                             k0 == 0 && bias != nullptr ? bias + n0 : nullptr,
                             accumulate || k0 > 0,
                             c + i * c_row + n0,
                             c_row,
                             columns,
                             depth};
          const Index rows = m - i < kRows ? m - i : kRows;
          if (a_row == 1 && a_column != 1)
            multiply_rows<kRows, true>(tile, rows);
          else
            multiply_rows<kRows, false>(tile, rows);
        }
      }
  }
}

static void pack(const float* b, Index b_row, Index b_column, Index k, Index n, float* packed) {
  for (Index n0 = 0; n0 < n; n0 += kPanel) {
    float* out = packed + n0 * k;
    const Index columns = n - n0 < kPanel ? n - n0 : kPanel;
    if (b_column == 1) {
      for (Index p = 0; p < k; ++p)
        for (Index half = 0; half < kPanel; half += kWidth) {
          const float* from = b + p * b_row + n0 + half;
          const Index left = columns - half;
          store(out + p * kPanel + half, left >= kWidth ? load(from)
                                         : left > 0     ? load_part(from, left, 0)
                                                        : Vector{});
        }
      continue;
    }
    for (Index p0 = 0; p0 < k; p0 += kWidth) { // in blocks: reads a transposed b along its rows
      if (b_row == 1 && columns == kPanel && k - p0 >= kWidth) {
        for (Index half = 0; half < kPanel; half += kWidth) {
          Vector square[kWidth];
          for (int j = 0; j < kWidth; ++j)
            square[j] = load(b + (n0 + half + j) * b_column + p0);
          transpose(square);
          for (int p = 0; p < kWidth; ++p)
            store(out + (p0 + p) * kPanel + half, square[p]);
        }
        continue;
      }
      const Index last = k - p0 < kWidth ? k : p0 + kWidth;
      for (Index j = 0; j < kPanel; ++j)
        for (Index p = p0; p < last; ++p)
          out[p * kPanel + j] = j < columns ? b[p * b_row + (n0 + j) * b_column] : 0.0f;
    }
  }
}

} // namespace troupe::learner::TROUPE_KERNELS
