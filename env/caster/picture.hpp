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

/// The candidates of a row of blocks.
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

/// The kernels of a projection, with the best instruction set of this processor.
struct ProjectionKernels {
  void (*draw)(Frame& frame, Picture& picture);
  /// Fills the tables of planes under spot lights; draw() does so itself.
  void (*tables)(Frame& frame);
  /// What the first `count` shapes show: [height, width] distance from the camera, `far` where
  /// there is nothing, and [height, width] number of the shape, -1 where there is none. Either may
  /// be null.
  void (*look)(const Frame& frame, Picture& picture, int count, float* distances,
               std::int32_t* shapes);
};

const ProjectionKernels& perspective_kernels();
const ProjectionKernels& orthographic_kernels();
inline const ProjectionKernels& kernels_of(const Frame& frame) {
  return frame.camera.orthographic ? orthographic_kernels() : perspective_kernels();
}

/// Byte `shift` / 8 of `count` packed colours or, if `grey`, their luma (Rec. 601: .299, .587,
/// .114). The row of colours has room for 16 more.
void write_bytes(const std::int32_t* colours, int count, int shift, bool grey, std::uint8_t* out);

} // namespace troupe::env::caster
