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
