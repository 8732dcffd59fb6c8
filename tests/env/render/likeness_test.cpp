#include "env/render/likeness.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "env/random.hpp"

using namespace troupe::env;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes noise(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  Bytes out(size);
  for (auto& value : out)
    value = static_cast<std::uint8_t>(random.uniform(0, 256));
  return out;
}

Bytes disturbed(const Bytes& picture, double levels, std::uint64_t seed) {
  Random random(seed);
  Bytes out = picture;
  for (auto& value : out)
    value = static_cast<std::uint8_t>(
        std::min(255., std::max(0., value + random.uniform(-levels, levels))));
  return out;
}

/// Straight from the definition: two passes over each window.
double slow_similarity(const Bytes& a, const Bytes& b, const PictureShape& shape) {
  double sum = 0;
  int windows = 0;
  const auto at = [&](const Bytes& picture, int y, int x, int c) {
    return static_cast<double>(
        picture[static_cast<std::size_t>((y * shape.width + x) * shape.channels + c)]);
  };
  for (int c = 0; c < shape.channels; ++c)
    for (int y = 3; y + 3 < shape.height; ++y)
      for (int x = 3; x + 3 < shape.width; ++x) {
        double mean_a = 0;
        double mean_b = 0;
        for (int i = 0; i < 49; ++i) {
          mean_a += at(a, y - 3 + i / 7, x - 3 + i % 7, c) / 49;
          mean_b += at(b, y - 3 + i / 7, x - 3 + i % 7, c) / 49;
        }
        double aa = 0;
        double bb = 0;
        double ab = 0;
        for (int i = 0; i < 49; ++i) {
          const double da = at(a, y - 3 + i / 7, x - 3 + i % 7, c) - mean_a;
          const double db = at(b, y - 3 + i / 7, x - 3 + i % 7, c) - mean_b;
          aa += da * da / 48;
          bb += db * db / 48;
          ab += da * db / 48;
        }
        const double c1 = std::pow(.01 * 255, 2);
        const double c2 = std::pow(.03 * 255, 2);
        sum += (2 * mean_a * mean_b + c1) * (2 * ab + c2)
               / ((mean_a * mean_a + mean_b * mean_b + c1) * (aa + bb + c2));
        ++windows;
      }
  return sum / windows;
}

} // namespace

TEST_CASE("Structural similarity matches its definition, window by window") {
  for (const PictureShape& shape :
       {PictureShape{7, 7, 1}, PictureShape{9, 13, 3}, PictureShape{20, 8, 2}}) {
    const Bytes a = noise(shape.numbers(), 1);
    for (const double levels : {0., 3., 40., 255.}) {
      const Bytes b = disturbed(a, levels, 2);
      CHECK(structural_similarity(a, b, shape)
            == doctest::Approx(slow_similarity(a, b, shape)).epsilon(1e-9));
    }
  }
}

TEST_CASE("Similarity is 1 for equal pictures and falls the more they differ") {
  const PictureShape shape{24, 30, 3};
  const Bytes a = noise(shape.numbers(), 3);
  CHECK(structural_similarity(a, a, shape) == doctest::Approx(1));
  double before = 1;
  for (const double levels : {2., 10., 50., 200.}) {
    const Bytes b = disturbed(a, levels, 4);
    const double similarity = structural_similarity(a, b, shape);
    CHECK(similarity < before);
    CHECK(similarity == doctest::Approx(structural_similarity(b, a, shape)));
    before = similarity;
  }
}

TEST_CASE(
    "Differences are absolute, their mean is in levels, and their picture saturates at white") {
  const Bytes a = {0, 10, 200, 255};
  const Bytes b = {3, 0, 200, 0};
  CHECK(mean_absolute_difference(a, b) == doctest::Approx((3 + 10 + 0 + 255) / 4.));
  Bytes picture(4);
  difference_picture(a, b, 4, picture);
  CHECK(picture == Bytes{12, 40, 0, 255});
}

TEST_CASE("Pictures of different sizes or smaller than a window are refused") {
  const Bytes a(7 * 7 * 3);
  CHECK_THROWS_WITH_AS(structural_similarity(a, a, {6, 8, 3}), doctest::Contains("7x7"),
                       std::invalid_argument);
  CHECK_THROWS_AS(structural_similarity(a, Bytes(3), {7, 7, 3}), std::invalid_argument);
  CHECK_THROWS_AS(mean_absolute_difference(a, Bytes(3)), std::invalid_argument);
}

TEST_CASE("Depths and objects are compared only away from edges") {
  constexpr int kHeight = 6;
  constexpr int kWidth = 8;
  std::vector<float> depth(kHeight * kWidth, 2);
  std::vector<std::int32_t> objects(2 * kHeight * kWidth);
  for (std::size_t i = 0; i < depth.size(); ++i) { // two objects, left and right
    objects[2 * i] = i % kWidth < 4 ? 7 : -1;
    objects[2 * i + 1] = i % kWidth < 4 ? 5 : -1;
  }
  const auto compared = [&](const std::vector<float>& d, const std::vector<std::int32_t>& o) {
    return compare_shapes(depth, d, objects, o, kHeight, kWidth);
  };
  ShapeLikeness likeness = compared(depth, objects);
  CHECK(likeness.inner_pixels == 6 * kHeight); // all but the two columns at the edge
  CHECK(likeness.agreement() == 1);
  CHECK(likeness.depth_pixels == 3 * kHeight); // pixels that show nothing do not count
  CHECK(likeness.depth_share_within() == 1);

  auto other = objects;
  other[2 * 3] = 8; // at an edge: is not counted
  CHECK(compared(depth, other).agreement() == 1);
  other[2 * 1] = 8; // away from the edge: is counted
  CHECK(compared(depth, other).same_object == likeness.inner_pixels - 1);

  auto farther = depth;
  farther[0] = 2.001F; // half the tolerance
  farther[1] = 2.02F;
  farther[2] = std::numeric_limits<float>::quiet_NaN();
  likeness = compared(farther, objects);
  CHECK(likeness.depth_within == likeness.depth_pixels - 2);
  CHECK(std::isinf(likeness.depth_error_maximum));
}
