#pragma once
// What the kernels with AMX share. Only they include it.

#include <immintrin.h>

#define TROUPE_KERNELS kernels_amx
#include "learner/nn/kernels/vector_math.hpp"

namespace troupe::learner::kernels_amx {

constexpr Index kTileRows = 16; // of a tile
constexpr Index kDepth = 32;    // numbers of a row of a tile in bfloat16
constexpr Index kColumns = 16;  // of a tile of sums
constexpr Index kTile = kTileRows * kDepth;
constexpr Index kSide = 32; // rows and columns of sums that stay in tiles

static inline Index blocks(Index count, Index size) {
  return (count + size - 1) / size;
}

/// 16 numbers of low, then 16 of high, in bfloat16.
static inline __m512i pairs(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

/// Places of 16-bit numbers in one or two vectors.
struct alignas(64) Places {
  std::uint16_t at[32];
};

/// 16 numbers in bfloat16 as float32, of the lower or the upper half.
static inline __m512 widened(__m512i rounded, bool upper) {
  static constexpr Places kLower{{0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                                  0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15}};
  const __m512i lower = _mm512_load_si512(kLower.at);
  const __m512i places = upper ? _mm512_add_epi16(lower, _mm512_set1_epi16(16)) : lower;
  // A number in bfloat16 is the upper half of that in float32.
  return reinterpret_cast<__m512>(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, places, rounded));
}

/// Pairs of a number of `even` and one of `odd`, of the lower or the upper half.
static inline __m512i interleaved(__m512i even, __m512i odd, bool upper) {
  static constexpr Places kLower{{0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                  8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47}};
  const __m512i lower = _mm512_load_si512(kLower.at);
  const __m512i places = upper ? _mm512_add_epi16(lower, _mm512_set1_epi16(16)) : lower;
  return _mm512_permutex2var_epi16(even, places, odd);
}

/// Keeps what was written before from moving behind the loads of tiles, of which GCC does not know
/// that they read memory.
static inline void finish_writes() {
  asm volatile("" ::: "memory");
}

struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14]{};
  std::uint16_t row_bytes[16]{};
  std::uint8_t rows[16]{};
  TileConfiguration() {
    for (int tile = 0; tile < 8; ++tile) {
      row_bytes[tile] = 64;
      rows[tile] = 16;
    }
  }
};

/// Holds the tiles' configuration. Without it, the system need not keep the tiles.
class Tiles {
public:
  Tiles() {
    static const TileConfiguration configuration;
    _tile_loadconfig(&configuration);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

} // namespace troupe::learner::kernels_amx
