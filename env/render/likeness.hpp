#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::env {

/// How alike two pictures are. Pictures are [height, width, channels] of equal sizes; pure
/// functions, any thread. They throw std::invalid_argument when sizes do not fit.
struct PictureShape {
  int height = 0;
  int width = 0;
  int channels = 3;

  std::size_t numbers() const;
};

/// Structural similarity (Wang and others, 2004) as scikit-image's structural_similarity() with
/// channel_axis and data_range 255: windows of 7x7 equal weights inside the picture, sample
/// covariance, K1 .01, K2 .03; the mean over windows and channels. 1: equal. At least 7x7 pixels.
double structural_similarity(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                             const PictureShape& shape);

/// In levels of 255.
double mean_absolute_difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// min(255, factor * |a - b|) of every number.
void difference_picture(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                        int factor, std::span<std::uint8_t> out);

/// Depths and segmentations of the same view, [height, width] and [height, width, 2]. A pixel is
/// away from edges when its 3x3 neighbourhood (cut off at the border) is all of one object in the
/// first segmentation.
struct ShapeLikeness {
  std::size_t inner_pixels = 0;   // away from edges
  std::size_t same_object = 0;    // of them
  std::size_t depth_pixels = 0;   // away from edges, the same object in both, not background
  double depth_error_sum = 0;     // |b - a| / a
  double depth_error_maximum = 0; // infinite when one is not finite
  std::size_t depth_within = 0;   // of them, off by at most kDepthTolerance

  double agreement() const; // same_object / inner_pixels, 1 when there are none
  double depth_error_mean() const;
  double depth_share_within() const; // 1 when there are none
  void add(const ShapeLikeness& other);
};

inline constexpr double kDepthTolerance = 1e-3; // relative

ShapeLikeness compare_shapes(std::span<const float> depth_a, std::span<const float> depth_b,
                             std::span<const std::int32_t> objects_a,
                             std::span<const std::int32_t> objects_b, int height, int width);

} // namespace troupe::env
