#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "env/caster/frame.hpp"

namespace troupe::env::caster {

inline constexpr int kBlockSide = 4; // in pixels
inline constexpr int kBlockPixels = 16;

/// The items of a SpanSet in one row of blocks, and for each block a mask of the items that may
/// cover it.
struct RowItems {
  std::vector<std::int32_t> items;
  std::vector<std::uint64_t> masks; // [columns][words]; bit i stands for items[i]
  int words = 0;

  void collect(const SpanSet& set, int row, int columns);
  const std::uint64_t* block(int column) const {
    return masks.data() + static_cast<std::size_t>(column) * static_cast<std::size_t>(words);
  }
};

/// The items that may be visible, mirrored or shadowed in a row of blocks.
struct RowCandidates {
  RowItems visible;
  RowItems mirrored;
  RowItems shadowed;
  std::vector<std::uint8_t> thin; // [columns]: a shape may fall between pixel centres

  void collect(const Frame& frame, int row);
};

/// The pixels of a picture in progress, row by row, with a margin of kPad pixels on each side and
/// one row above and below. Colours are red | green << 8 | blue << 16.
struct Picture {
  static constexpr int kPad = 16;

  int stride = 0;
  std::vector<std::int32_t> keys;    // equal keys mean that the pixels show the same thing
  std::vector<std::int32_t> colours; // at the pixels' centres
  std::vector<std::int32_t> smooth;  // the finished picture
  std::vector<std::int32_t> sky;     // the background
  // The numbers that `sky` depends on: the camera's right, up, forward, u0, v0, du and dv, and the
  // fog.
  std::array<float, 19> sky_numbers{};
  bool sky_known = false;
  RowCandidates rows[2];
  std::vector<std::uint64_t> merged; // union of the masks of several blocks
  std::vector<std::uint32_t> edges;  // [block columns]: bits of the pixels to anti-alias

  void resize(int block_columns, int block_rows);
  std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y + 1) * static_cast<std::size_t>(stride)
           + static_cast<std::size_t>(x + kPad);
  }
};

/// The kernels of a projection, compiled for the best instruction set of this processor.
struct ProjectionKernels {
  void (*draw)(Frame& frame, Picture& picture);
  /// Fills the tables of planes under spot lights. draw() calls it itself.
  void (*tables)(Frame& frame);
  /// Finds what is visible of the first `count` shapes at each pixel. `distances`: [height, width],
  /// from the camera; `far` where there is no shape. `shapes`: [height, width], the shape's index,
  /// or -1 where there is none. Either may be null.
  void (*look)(const Frame& frame, Picture& picture, int count, float* distances,
               std::int32_t* shapes);
};

const ProjectionKernels& perspective_kernels();
const ProjectionKernels& orthographic_kernels();
inline const ProjectionKernels& kernels_of(const Frame& frame) {
  return frame.camera.orthographic ? orthographic_kernels() : perspective_kernels();
}

/// Writes byte `shift` / 8 of `count` packed colours or, with `grey`, their luma (Rec. 601: .299,
/// .587, .114). The colours must be readable up to 16 elements past the end of the row.
void write_bytes(const std::int32_t* colours, int count, int shift, bool grey, std::uint8_t* out);

} // namespace troupe::env::caster
