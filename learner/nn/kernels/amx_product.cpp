#include "learner/nn/kernels/amx_product.hpp"

#if defined(__AMX_BF16__)
#include "learner/nn/kernels/amx_tiles.hpp"
#endif

namespace troupe::learner {

#if defined(__AMX_BF16__)

namespace {

using namespace kernels_amx;

constexpr Index kGroup = 128; // columns of a that multiply_transposed_amx() packs at a time

__mmask16 first(Index count) {
  return count >= 16 ? static_cast<__mmask16>(-1)
                     : static_cast<__mmask16>(count <= 0 ? 0 : (1u << count) - 1);
}

__m512 load(const float* p, Index count) {
  return _mm512_maskz_loadu_ps(first(count), p);
}

/// What pairs(low, high) leaves of the numbers.
__m512i rest(__m512 low, __m512 high, __m512i rounded) {
  return pairs(low - widened(rounded, false), high - widened(rounded, true));
}

/// A row of a tile of a; the second part is a tile behind the first.
template <int kParts>
void store_left(__m512 low, __m512 high, std::uint16_t* out) {
  const __m512i rounded = pairs(low, high);
  _mm512_store_si512(out, rounded);
  if constexpr (kParts == 2)
    _mm512_store_si512(out + kTile, rest(low, high, rounded));
}

/// A tile of a: 16 rows of 32 numbers each, zero beyond `rows` and `depth`.
template <int kParts>
void pack_left(const Strided& a, Index rows, Index depth, std::uint16_t* out) {
  if (a.column == 1) {
    for (Index i = 0; i < kTileRows; ++i) {
      const float* row = a.data + i * a.row;
      if (i < rows)
        store_left<kParts>(load(row, depth), load(row + 16, depth - 16), out + i * kDepth);
      else
        store_left<kParts>(__m512{}, __m512{}, out + i * kDepth);
    }
    return;
  }
  Vector low[16], high[16]; // columns of a
  for (Index j = 0; j < 16; ++j) {
    low[j] = j < depth ? load(a.data + j * a.column, rows) : Vector{};
    high[j] = j + 16 < depth ? load(a.data + (j + 16) * a.column, rows) : Vector{};
  }
  transpose(low);
  transpose(high);
  for (Index i = 0; i < kTileRows; ++i)
    store_left<kParts>(low[i], high[i], out + i * kDepth);
}

/// Packs b where its rows are dense. Goes along the rows, as the processor then reads ahead.
template <int kParts>
void pack_rows(const Strided& b, Index k, Index n, std::uint16_t* packed) {
  alignas(64) static constexpr std::uint16_t kMix[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                         21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                         11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i mix = _mm512_load_si512(kMix);
  const Index depths = blocks(k, kDepth);
  const Index tiles = 2 * blocks(n, kSide);
  for (Index row = 0; row < depths * kDepth; row += 2) {
    const float* even = b.data + row * b.row;
    std::uint16_t* out = packed + row / kDepth * kParts * kTile + row % kDepth / 2 * kDepth;
    for (Index j = 0; j < tiles; ++j) {
      const Index at = j * kColumns;
      const __m512 low = row < k ? load(even + at, n - at) : __m512{};
      const __m512 high = row + 1 < k ? load(even + b.row + at, n - at) : __m512{};
      const __m512i rounded = pairs(low, high);
      std::uint16_t* tile = out + j * depths * kParts * kTile;
      _mm512_store_si512(tile, _mm512_maskz_permutexvar_epi16(~__mmask32{0}, mix, rounded));
      if constexpr (kParts == 2)
        _mm512_store_si512(tile + kTile, _mm512_maskz_permutexvar_epi16(~__mmask32{0}, mix,
                                                                        rest(low, high, rounded)));
    }
  }
}

/// Packs a tile of b, 16 rows of 16 pairs, where its columns are dense. A pair has two numbers of a
/// column.
template <int kParts>
void pack_columns(const Strided& b, Index depth, Index columns, std::uint16_t* out) {
  Vector rows[kParts][16]; // of pairs, by columns of b
  for (Index j = 0; j < kColumns; ++j) {
    const float* column = b.data + j * b.column;
    const __m512 low = j < columns ? load(column, depth) : __m512{};
    const __m512 high = j < columns ? load(column + 16, depth - 16) : __m512{};
    const __m512i rounded = pairs(low, high);
    rows[0][j] = reinterpret_cast<Vector>(rounded);
    if constexpr (kParts == 2)
      rows[1][j] = reinterpret_cast<Vector>(rest(low, high, rounded));
  }
  for (int part = 0; part < kParts; ++part) {
    transpose(rows[part]);
    for (Index p = 0; p < kTileRows; ++p)
      _mm512_store_si512(out + part * kTile + p * kDepth, reinterpret_cast<__m512i>(rows[part][p]));
  }
}

template <int kParts>
void pack_right(const Strided& b, Index k, Index n, std::uint16_t* packed) {
  if (b.column == 1)
    return pack_rows<kParts>(b, k, n, packed);
  const Index depths = blocks(k, kDepth);
  for (Index j = 0; j < 2 * blocks(n, kSide); ++j)
    for (Index d = 0; d < depths; ++d)
      pack_columns<kParts>({b.data + d * kDepth * b.row + j * kColumns * b.column, b.row, b.column},
                           k - d * kDepth, n - j * kColumns,
                           packed + (j * depths + d) * kParts * kTile);
}

/// Fetches the part of c that a block of sums will overwrite.
void fetch_block(const float* c, Index c_row, Index rows) {
  for (Index i = 0; i < (rows < kSide ? rows : kSide); ++i) {
    __builtin_prefetch(c + i * c_row, 1);
    __builtin_prefetch(c + i * c_row + 16, 1);
  }
}

/// Copies what is valid of a block of sums between `sums` and c.
void spread(const float* sums, float* c, Index c_row, Index rows, Index columns) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; j += 16)
      _mm512_mask_storeu_ps(c + i * c_row + j, first(columns - j),
                            _mm512_load_ps(sums + i * kSide + j));
}
void gather(const float* c, Index c_row, Index rows, Index columns, float* sums) {
  for (Index i = 0; i < kSide; ++i)
    for (Index j = 0; j < kSide; j += 16)
      _mm512_store_ps(sums + i * kSide + j,
                      i < rows ? load(c + i * c_row + j, columns - j) : __m512{});
}

/// 32 rows of a left factor in bfloat16. A second part is a tile behind the first.
struct Left {
  const std::uint16_t* upper; // 16 rows
  const std::uint16_t* lower;
  Index step;      // from one depth to the next
  Index row_bytes; // from one row to the next
};

/// Adds the products of one depth to the tiles 0 to 3. `one` and `two`: tiles of b, which would
/// drive the left factor from the first-level cache if they were not loaded as a stream.
template <int kParts>
void add_depth(const std::uint16_t* upper, const std::uint16_t* lower, Index row_bytes,
               const std::uint16_t* one, const std::uint16_t* two) {
  _tile_loadd(4, upper, row_bytes);
  _tile_stream_loadd(6, one, 64);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kParts == 1)
    _tile_stream_loadd(7, two, 64);
  _tile_loadd(5, lower, row_bytes);
  _tile_dpbf16ps(2, 5, 6);
  if constexpr (kParts == 2) {
    _tile_stream_loadd(7, one + kTile, 64); // what is left of b
    _tile_dpbf16ps(0, 4, 7);
    _tile_dpbf16ps(2, 5, 7);
    _tile_stream_loadd(7, two + kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_stream_loadd(7, two, 64);
  }
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
  if constexpr (kParts == 2) {
    _tile_loadd(4, upper + kTile, row_bytes); // what is left of a
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, lower + kTile, row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

/// Where sums begin: at the bias, at c, or at 0.
struct Start {
  const float* bias;
  bool adds;
};

/// A block of c, of at most 32 rows and columns. `right`: its two columns of tiles.
template <int kParts>
void multiply_block(const Left& left, const std::uint16_t* right, Index depths, Start start,
                    float* c, Index c_row, Index rows, Index columns) {
  alignas(64) float sums[kSide * kSide];
  alignas(64) float part[kSide];
  const bool whole = rows >= kSide && columns >= kSide;
  float* to = whole ? c : sums;
  const Index row = whole ? c_row : kSide;
  if (start.adds) {
    if (!whole)
      gather(c, c_row, rows, columns, sums);
    finish_writes();
    _tile_loadd(0, to, row * 4);
    _tile_loadd(1, to + 16, row * 4);
    _tile_loadd(2, to + 16 * row, row * 4);
    _tile_loadd(3, to + 16 * row + 16, row * 4);
  } else if (start.bias != nullptr) {
    const float* bias = start.bias;
    if (columns < kSide) {
      _mm512_store_ps(part, load(bias, columns));
      _mm512_store_ps(part + 16, load(bias + 16, columns - 16));
      bias = part;
      finish_writes();
    }
    _tile_loadd(0, bias, 0);
    _tile_loadd(1, bias + 16, 0);
    _tile_loadd(2, bias, 0);
    _tile_loadd(3, bias + 16, 0);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const std::uint16_t* two = right + depths * kParts * kTile;
  for (Index d = 0; d < depths; ++d)
    add_depth<kParts>(left.upper + d * left.step, left.lower + d * left.step, left.row_bytes,
                      right + d * kParts * kTile, two + d * kParts * kTile);
  _tile_stored(0, to, row * 4);
  _tile_stored(1, to + 16, row * 4);
  _tile_stored(2, to + 16 * row, row * 4);
  _tile_stored(3, to + 16 * row + 16, row * 4);
  if (!whole)
    spread(sums, c, c_row, rows < kSide ? rows : kSide, columns < kSide ? columns : kSide);
}

/// Rows [i, i + 32) and columns [j, j + 32) of c.
template <int kParts>
void multiply_columns(const Left& left, const AmxProduct& p, Index i, Index j) {
  const Index depths = blocks(p.k, kDepth);
  float* c = p.c + i * p.c_row + j;
  fetch_block(c, p.c_row, p.m - i);
  multiply_block<kParts>(left, p.packed + j / kColumns * depths * kParts * kTile, depths,
                         {p.bias == nullptr ? nullptr : p.bias + j, p.adds}, c, p.c_row, p.m - i,
                         p.n - j);
}

/// Rows [i, i + 32) of c.
template <int kParts>
void multiply_rows(const Left& left, const AmxProduct& p, Index i) {
  finish_writes();
  for (Index j = 0; j < p.n; j += kSide)
    multiply_columns<kParts>(left, p, i, j);
}

template <int kParts>
void multiply_packing(const Strided& a, const AmxProduct& p, std::uint16_t* scratch) {
  const Tiles tiles;
  const Index depths = blocks(p.k, kDepth);
  constexpr Index kStep = kParts * kTile;
  const Left left{scratch, scratch + depths * kStep, kStep, 64};
  for (Index i = 0; i < p.m; i += kSide) {
    for (Index half = 0; half < 2; ++half)
      for (Index d = 0; d < depths; ++d)
        pack_left<kParts>(
            {a.data + (i + half * kTileRows) * a.row + d * kDepth * a.column, a.row, a.column},
            p.m - i - half * kTileRows, p.k - d * kDepth, scratch + (half * depths + d) * kStep);
    multiply_rows<kParts>(left, p, i);
  }
}

/// Columns of a from column `i` as rows, as many as `out` has room for; zero beyond the k rows of
/// a. Goes along the rows of a.
void pack_transposed(const RoundedRows& a, Index i, Index columns, Index k, std::uint16_t* out) {
  const Index depths = blocks(k, kDepth);
  for (Index d = 0; d < depths; ++d)
    for (Index j = 0; j < columns; j += kSide) {
      Vector low[kTileRows], high[kTileRows]; // pairs of rows of a, by columns
      for (Index pair = 0; pair < kTileRows; ++pair) {
        const Index row = d * kDepth + 2 * pair;
        const std::uint16_t* even = a.data + row * a.row + i + j;
        const __m512i one = row < k ? _mm512_loadu_si512(even) : __m512i{};
        const __m512i two = row + 1 < k ? _mm512_loadu_si512(even + a.row) : __m512i{};
        low[pair] = reinterpret_cast<Vector>(interleaved(one, two, false));
        high[pair] = reinterpret_cast<Vector>(interleaved(one, two, true));
      }
      transpose(low);
      transpose(high);
      std::uint16_t* tile = out + (j / kTileRows * depths + d) * kTile;
      for (Index r = 0; r < kTileRows; ++r) {
        _mm512_store_si512(tile + r * kDepth, reinterpret_cast<__m512i>(low[r]));
        _mm512_store_si512(tile + depths * kTile + r * kDepth, reinterpret_cast<__m512i>(high[r]));
      }
    }
}

} // namespace

Index amx_packed_size(Index k, Index n) {
  return 2 * blocks(n, kSide) * blocks(k, kDepth) * kTile;
}

Index amx_scratch_size(Index k) {
  return 2 * blocks(k, kDepth) * kTile;
}

Index amx_transposed_size(Index m, Index k) {
  return 2 * blocks(m < kGroup ? m : kGroup, kSide) * blocks(k, kDepth) * kTile;
}

void pack_amx(const Strided& b, Index k, Index n, int parts, std::uint16_t* packed) {
  parts == 1 ? pack_right<1>(b, k, n, packed) : pack_right<2>(b, k, n, packed);
}

void pack_amx(const RoundedRows& b, Index k, Index n, std::uint16_t* packed) {
  const Index depths = blocks(k, kDepth);
  for (Index row = 0; row < depths * kDepth; row += 2) {
    const std::uint16_t* even = b.data + row * b.row;
    std::uint16_t* out = packed + row / kDepth * kTile + row % kDepth / 2 * kDepth;
    for (Index j = 0; j < blocks(n, kSide); ++j) {
      const __m512i low = row < k ? _mm512_loadu_si512(even + j * kSide) : __m512i{};
      const __m512i high = row + 1 < k ? _mm512_loadu_si512(even + b.row + j * kSide) : __m512i{};
      _mm512_store_si512(out + 2 * j * depths * kTile, interleaved(low, high, false));
      _mm512_store_si512(out + (2 * j + 1) * depths * kTile, interleaved(low, high, true));
    }
  }
}

void multiply_amx(const Strided& a, const AmxProduct& p, std::uint16_t* scratch) {
  p.parts == 1 ? multiply_packing<1>(a, p, scratch) : multiply_packing<2>(a, p, scratch);
}

void multiply_amx(const RoundedRows& a, const AmxProduct& p) {
  const Tiles tiles;
  for (Index i = 0; i < p.m; i += kSide) {
    const std::uint16_t* rows = a.data + i * a.row;
    multiply_rows<1>({rows, rows + kTileRows * a.row, kDepth, 2 * a.row}, p, i);
  }
}

void multiply_transposed_amx(const RoundedRows& a, const AmxProduct& p, std::uint16_t* scratch) {
  const Tiles tiles;
  const Index depths = blocks(p.k, kDepth);
  for (Index i = 0; i < p.m; i += kGroup) {
    const Index rows = p.m - i < kGroup ? p.m - i : kGroup;
    pack_transposed(a, i, rows, p.k, scratch);
    finish_writes();
    for (Index j = 0; j < p.n; j += kSide)
      for (Index r = 0; r < rows; r += kSide) {
        const std::uint16_t* upper = scratch + r / kTileRows * depths * kTile;
        multiply_columns<1>({upper, upper + depths * kTile, kTile, 64}, p, i + r, j);
      }
  }
}

#else // other processors, on which nothing calls these

std::int64_t amx_packed_size(std::int64_t, std::int64_t) {
  return 0;
}
std::int64_t amx_scratch_size(std::int64_t) {
  return 0;
}
std::int64_t amx_transposed_size(std::int64_t, std::int64_t) {
  return 0;
}
void pack_amx(const Strided&, std::int64_t, std::int64_t, int, std::uint16_t*) {}
void pack_amx(const RoundedRows&, std::int64_t, std::int64_t, std::uint16_t*) {}
void multiply_amx(const Strided&, const AmxProduct&, std::uint16_t*) {}
void multiply_amx(const RoundedRows&, const AmxProduct&) {}
void multiply_transposed_amx(const RoundedRows&, const AmxProduct&, std::uint16_t*) {}

#endif

} // namespace troupe::learner
