#include "env/render/likeness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::env {

namespace {

constexpr int kWindow = 7;

void check_sizes(std::size_t a, std::size_t b, std::size_t expected) {
  if (a != expected || b != expected)
    throw std::invalid_argument("pictures of " + std::to_string(a) + " and " + std::to_string(b)
                                + " numbers cannot be compared as " + std::to_string(expected));
}

/// Sums of a, b, a², b² and ab over a window of one channel.
struct Sums {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t aa = 0;
  std::int64_t bb = 0;
  std::int64_t ab = 0;

  void add(const Sums& o, std::int64_t sign) {
    a += sign * o.a;
    b += sign * o.b;
    aa += sign * o.aa;
    bb += sign * o.bb;
    ab += sign * o.ab;
  }
};

Sums of_pixel(std::int64_t a, std::int64_t b) {
  return {a, b, a * a, b * b, a * b};
}

double similarity(const Sums& sums) {
  constexpr double kCount = kWindow * kWindow;
  constexpr double kSample = kCount / (kCount - 1);
  constexpr double kC1 = .01 * 255 * .01 * 255;
  constexpr double kC2 = .03 * 255 * .03 * 255;
  const double a = static_cast<double>(sums.a) / kCount;
  const double b = static_cast<double>(sums.b) / kCount;
  const double var_a = kSample * (static_cast<double>(sums.aa) / kCount - a * a);
  const double var_b = kSample * (static_cast<double>(sums.bb) / kCount - b * b);
  const double covariance = kSample * (static_cast<double>(sums.ab) / kCount - a * b);
  return (2 * a * b + kC1) * (2 * covariance + kC2)
         / ((a * a + b * b + kC1) * (var_a + var_b + kC2));
}

} // namespace

std::size_t PictureShape::numbers() const {
  return static_cast<std::size_t>(height) * static_cast<std::size_t>(width)
         * static_cast<std::size_t>(channels);
}

double structural_similarity(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                             const PictureShape& shape) {
  if (shape.height < kWindow || shape.width < kWindow || shape.channels < 1)
    throw std::invalid_argument("structural similarity needs pictures of at least 7x7 pixels; "
                                "they have "
                                + std::to_string(shape.width) + "x" + std::to_string(shape.height));
  check_sizes(a.size(), b.size(), shape.numbers());
  const auto width = static_cast<std::size_t>(shape.width);
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::size_t row = width * channels;
  std::vector<Sums> columns(row); // over the last 7 rows
  double sum = 0;
  for (std::size_t y = 0; y < static_cast<std::size_t>(shape.height); ++y) {
    for (std::size_t i = 0; i < row; ++i) {
      columns[i].add(of_pixel(a[y * row + i], b[y * row + i]), 1);
      if (y >= kWindow)
        columns[i].add(of_pixel(a[(y - kWindow) * row + i], b[(y - kWindow) * row + i]), -1);
    }
    if (y + 1 < kWindow)
      continue;
    for (std::size_t c = 0; c < channels; ++c) {
      Sums window;
      for (std::size_t x = 0; x < width; ++x) {
        window.add(columns[x * channels + c], 1);
        if (x >= kWindow)
          window.add(columns[(x - kWindow) * channels + c], -1);
        if (x + 1 >= kWindow)
          sum += similarity(window);
      }
    }
  }
  return sum
         / static_cast<double>((shape.height - kWindow + 1) * (shape.width - kWindow + 1)
                               * shape.channels);
}

double mean_absolute_difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  check_sizes(a.size(), b.size(), a.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i]));
  return a.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(a.size());
}

void difference_picture(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                        int factor, std::span<std::uint8_t> out) {
  check_sizes(a.size(), b.size(), out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint8_t>(
        std::min(255, factor * std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i]))));
}

double ShapeLikeness::agreement() const {
  return inner_pixels == 0 ? 1
                           : static_cast<double>(same_object) / static_cast<double>(inner_pixels);
}

double ShapeLikeness::depth_error_mean() const {
  return depth_pixels == 0 ? 0 : depth_error_sum / static_cast<double>(depth_pixels);
}

double ShapeLikeness::depth_share_within() const {
  return depth_pixels == 0 ? 1
                           : static_cast<double>(depth_within) / static_cast<double>(depth_pixels);
}

void ShapeLikeness::add(const ShapeLikeness& other) {
  inner_pixels += other.inner_pixels;
  same_object += other.same_object;
  depth_pixels += other.depth_pixels;
  depth_error_sum += other.depth_error_sum;
  depth_error_maximum = std::max(depth_error_maximum, other.depth_error_maximum);
  depth_within += other.depth_within;
}

ShapeLikeness compare_shapes(std::span<const float> depth_a, std::span<const float> depth_b,
                             std::span<const std::int32_t> objects_a,
                             std::span<const std::int32_t> objects_b, int height, int width) {
  const std::size_t count = PictureShape{height, width, 1}.numbers();
  check_sizes(depth_a.size(), depth_b.size(), count);
  check_sizes(objects_a.size(), objects_b.size(), 2 * count);
  const auto at = [width](int y, int x) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width)
           + static_cast<std::size_t>(x);
  };
  const auto same = [](std::span<const std::int32_t> a, std::size_t i,
                       std::span<const std::int32_t> b, std::size_t j) {
    return a[2 * i] == b[2 * j] && a[2 * i + 1] == b[2 * j + 1];
  };
  ShapeLikeness likeness;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::size_t i = at(y, x);
      bool inner = true;
      for (int v = std::max(0, y - 1); v <= std::min(height - 1, y + 1); ++v)
        for (int u = std::max(0, x - 1); u <= std::min(width - 1, x + 1); ++u)
          inner = inner && same(objects_a, i, objects_a, at(v, u));
      if (!inner)
        continue;
      ++likeness.inner_pixels;
      if (!same(objects_a, i, objects_b, i))
        continue;
      ++likeness.same_object;
      if (objects_a[2 * i + 1] < 0)
        continue;
      const double a = depth_a[i];
      double error = std::abs(depth_b[i] - a) / std::abs(a);
      error = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
      ++likeness.depth_pixels;
      likeness.depth_error_sum += error;
      likeness.depth_error_maximum = std::max(likeness.depth_error_maximum, error);
      likeness.depth_within += error <= kDepthTolerance ? 1 : 0;
    }
  return likeness;
}

} // namespace troupe::env
