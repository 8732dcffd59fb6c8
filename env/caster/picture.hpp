#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "env/caster/frame.hpp"

namespace troupe::env::caster {

inline constexpr int kBlockSide = 4; // pixels
inline constexpr int kBlockPixels = 16;

/// Items of a SpanSet that touch one row of blocks, and for each block which of them.
struct RowItems {
  std::vector<std::int32_t> items;
  std::vector<std::uint64_t> masks; // [columns][words]; bit i is items[i]
  int words = 0;

  void collect(const SpanSet& set, int row, int columns);
  const std::uint64_t* block(int column) const {
    return masks.data() + static_cast<std::size_t>(column) * static_cast<std::size_t>(words);
  }
};

/// All that a row of blocks may meet.
struct RowCandidates {
  RowItems visible;
  RowItems mirrored;
  RowItems shadowed;
  std::vector<std::uint8_t> thin; // [columns]: something may pass between pixels' centres

  void collect(const Frame& frame, int row);
};

/// Pixels while they are drawn, row after row, with a margin of kPad pixels on each side and one
/// row above and below. Colours are red | green << 8 | blue << 16.
struct Picture {
  static constexpr int kPad = 16;

  int stride = 0;
  std::vector<std::int32_t> keys;    // what is seen: equal numbers, equal things
  std::vector<std::int32_t> colours; // of the pixels' centres
  std::vector<std::int32_t> smooth;  // the picture
  std::vector<std::int32_t> sky;     // where nothing is
  // What `sky` depends on: the camera's right, up, forward, u0, v0, du, dv, and fog.
  std::array<float, 19> sky_numbers{};
  bool sky_known = false;
  RowCandidates rows[2];
  std::vector<std::uint64_t> merged; // masks of several blocks in one
  std::vector<std::uint32_t> edges;  // [block columns]: bits of the pixels to smooth

  void resize(int block_columns, int block_rows);
  std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y + 1) * static_cast<std::size_t>(stride)
           + static_cast<std::size_t>(x + kPad);
  }
};

/// The kernels, one set for each instruction set; kernels() gives those of this processor.
struct Kernels {
  void (*draw)(Frame& frame, Picture& picture);
  /// Fills the tables of planes under spot lights; draw() does so itself.
  void (*tables)(Frame& frame);
  /// [height, width] camera distance; `far` where nothing is.
  void (*depth)(const Frame& frame, Picture& picture, float* out);
  /// [height, width] number of the shape, -1 where nothing is.
  void (*shapes)(const Frame& frame, Picture& picture, std::int32_t* out);
  /// Byte `shift` / 8 of `count` colours, or their luma; the colours' row goes on for 16 more.
  void (*write)(const std::int32_t* colours, int count, int shift, bool grey, std::uint8_t* out);
  int lanes;
};

const Kernels& kernels();

} // namespace troupe::env::caster
