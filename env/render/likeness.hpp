#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::env {

/// The size of the pictures that the functions below compare, [height, width, channels]. The
/// functions are pure and thread-safe, and throw std::invalid_argument if sizes do not match.
struct PictureShape {
  int height = 0;
  int width = 0;
  int channels = 3;

  std::size_t numbers() const;
};

/// Returns the structural similarity (Wang and others, 2004), as scikit-image's
/// structural_similarity() with channel_axis and data_range 255: windows of 7x7 equal weights
/// inside the picture, sample covariance, K1 .01, K2 .03. It is the mean over windows and channels;
/// 1 means equal. Pictures must have at least 7x7 pixels.
double structural_similarity(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                             const PictureShape& shape);

/// Returns the mean absolute difference in levels from 0 to 255.
double mean_absolute_difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// Writes min(255, factor * |a - b|) for every number.
void difference_picture(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                        int factor, std::span<std::uint8_t> out);

/// The comparison of two depth pictures, [height, width], and two segmentations, [height, width,
/// 2], of the same view. A pixel is away from edges if its 3x3 neighbourhood (cut off at the
/// border) shows a single object in the first segmentation.
struct ShapeLikeness {
  std::size_t inner_pixels = 0;   // away from edges
  std::size_t same_object = 0;    // inner pixels with the same object in both
  std::size_t depth_pixels = 0;   // of these, pixels that do not show the background
  double depth_error_sum = 0;     // |b - a| / a
  double depth_error_maximum = 0; // infinite if an error is not finite
  std::size_t depth_within = 0;   // depth pixels with an error of at most kDepthTolerance

  double agreement() const; // same_object / inner_pixels; 1 if there are none
  double depth_error_mean() const;
  double depth_share_within() const; // depth_within / depth_pixels; 1 if there are none
  void add(const ShapeLikeness& other);
};

inline constexpr double kDepthTolerance = 1e-3; // relative

ShapeLikeness compare_shapes(std::span<const float> depth_a, std::span<const float> depth_b,
                             std::span<const std::int32_t> objects_a,
                             std::span<const std::int32_t> objects_b, int height, int width);

} // namespace troupe::env
