#pragma once

#include <cstdint>
#include <vector>

#include "learner/data/pictures/picture.hpp"

namespace troupe::learner::data {

/// Part of a picture, in pixels.
struct Box {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

/// Antialiased bilinear resizing: the levels that Pillow's resize(BILINEAR) gives, which
/// torchvision's transforms of pictures use (to one level where Pillow 13 takes the columns before
/// the rows). One thread at a time; memory is kept for the next.
class Resampler {
public:
  /// `box` of `in`, resized to `full` (as if there were nothing around the box), of which `window`
  /// is written: [window.height, window.width, 3]. Each box is within the picture that it is a part
  /// of.
  void resize(const Picture& in, const Box& box, const PictureSize& full, const Box& window,
              std::uint8_t* out);

private:
  /// Which inputs make an output, for outputs begin … end - 1, along one axis.
  struct Axis {
    void plan(int in, int out, int begin, int count);

    std::vector<int> first;
    std::vector<int> taps;
    std::vector<std::int32_t> weights; // [count, most], in units of 2^-22
    int most = 0;
    bool same = false; // each output is one input; there are no weights
  };

  void across(const Picture& in, const Box& box, int begin, int end, int width);
  void down(const Box& window, int begin, std::uint8_t* out);

  Axis across_;
  Axis down_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint8_t> narrow_; // rows resized across
  std::vector<std::int32_t> sums_;
};

} // namespace troupe::learner::data
