#pragma once

#include <cstdint>
#include <vector>

#include "learner/data/pictures/picture.hpp"

namespace troupe::learner::data {

/// A part of a picture, in pixels.
struct Box {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

/// Antialiased bilinear resizing. It gives the values of Pillow's resize(BILINEAR), which
/// torchvision's transforms of pictures use (to within one level where Pillow 13 processes columns
/// before rows). One thread at a time; buffers are reused for the next picture.
class Resampler {
public:
  /// Resizes `box` of `in` to the size `full`, as if there were nothing around the box, and writes
  /// the part `window` of the result: [window.height, window.width, 3]. `box` must be within `in`,
  /// and `window` within `full`.
  void resize(const Picture& in, const Box& box, const PictureSize& full, const Box& window,
              std::uint8_t* out);

private:
  /// The inputs of each output along one axis, for outputs begin … end - 1.
  struct Axis {
    void plan(int in, int out, int begin, int count);

    std::vector<int> first;
    std::vector<int> taps;
    std::vector<std::int32_t> weights; // [count, most], in units of 2^-22
    int most = 0;
    bool same = false; // each output equals one input, without weights
  };

  void across(const Picture& in, const Box& box, int begin, int end, int width);
  void down(const Box& window, int begin, std::uint8_t* out);

  Axis across_;
  Axis down_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint8_t> narrow_; // horizontally resized rows
  std::vector<std::int32_t> sums_;
};

} // namespace troupe::learner::data
