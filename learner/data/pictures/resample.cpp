#include "learner/data/pictures/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace troupe::learner::data {
namespace {

constexpr int kBits = 22; // of 32 bits, 8 are for a level and 2 for the sum of the weights
constexpr std::int32_t kHalf = 1 << (kBits - 1);

// Both loops are also compiled for AVX2, and chosen when the program starts. Not with sanitizers,
// which are not ready at that time.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)                                \
    && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TROUPE_ALSO_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define TROUPE_ALSO_AVX2
#endif

using Four = std::int32_t __attribute__((vector_size(16)));      // a pixel and the next value
using FourLevels = std::uint8_t __attribute__((vector_size(4))); // as stored

/// Every weighted sum is within 0 to 255, because the weights are positive and add up to 1. `row`
/// and `out` have one byte beyond their pixels.
TROUPE_ALSO_AVX2 void resize_row(const std::uint8_t* row, const int* first, const int* taps,
                                 const std::int32_t* weights, int most, std::size_t width,
                                 std::uint8_t* out) {
  for (std::size_t x = 0; x < width; ++x, weights += most, out += 3) {
    const std::uint8_t* from = row + static_cast<std::size_t>(first[x]) * 3;
    Four sum = {kHalf, kHalf, kHalf, kHalf};
    for (int k = 0; k < taps[x]; ++k, from += 3) {
      FourLevels levels;
      std::memcpy(&levels, from, sizeof levels);
      sum += __builtin_convertvector(levels, Four) * weights[k];
    }
    const auto levels = __builtin_convertvector(sum >> kBits, FourLevels);
    std::memcpy(out, &levels, sizeof levels);
  }
}

TROUPE_ALSO_AVX2 void add_row(const std::uint8_t* row, std::int32_t weight, std::size_t count,
                              std::int32_t* sums) {
  for (std::size_t i = 0; i < count; ++i)
    sums[i] += weight * row[i];
}

TROUPE_ALSO_AVX2 void store_row(const std::int32_t* sums, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>(sums[i] >> kBits);
}

} // namespace

/// A triangle filter as wide as two pixels of the coarser grid.
void Resampler::Axis::plan(int in, int out, int begin, int count) {
  same = in == out;
  const double scale = static_cast<double>(in) / out;
  const double reach = std::max(scale, 1.0);
  most = same ? 1 : static_cast<int>(std::ceil(reach)) * 2 + 1;
  first.resize(static_cast<std::size_t>(count));
  taps.resize(first.size());
  weights.assign(first.size() * static_cast<std::size_t>(most), 0);
  std::vector<double> exact(static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (same) {
      first[i] = begin + static_cast<int>(i);
      taps[i] = 1;
      continue;
    }
    const double centre = (begin + static_cast<int>(i) + 0.5) * scale;
    first[i] = std::max(0, static_cast<int>(centre - reach + 0.5));
    taps[i] = std::min(in, static_cast<int>(centre + reach + 0.5)) - first[i];
    double sum = 0;
    for (int k = 0; k < taps[i]; ++k) {
      const double distance = std::abs((first[i] + k - centre + 0.5) / reach);
      sum += exact[static_cast<std::size_t>(k)] = std::max(0.0, 1 - distance);
    }
    for (int k = 0; k < taps[i]; ++k)
      weights[i * static_cast<std::size_t>(most) + static_cast<std::size_t>(k)] =
          static_cast<std::int32_t>(0.5 + exact[static_cast<std::size_t>(k)] / sum * (1 << kBits));
  }
}

/// Resizes the rows begin … end - 1 of the box horizontally to `width` pixels.
void Resampler::across(const Picture& in, const Box& box, int begin, int end, int width) {
  const auto row_bytes = static_cast<std::size_t>(width) * 3;
  const auto box_bytes = static_cast<std::size_t>(box.width) * 3;
  narrow_.resize(static_cast<std::size_t>(end - begin) * row_bytes + 1);
  row_.resize(box_bytes + 1);
  std::uint8_t* to = narrow_.data();
  for (int y = begin; y < end; ++y, to += row_bytes) {
    const std::uint8_t* row = in.rgb.data() + static_cast<std::size_t>(box.top + y) * in.row_bytes()
                              + static_cast<std::size_t>(box.left) * 3;
    if (across_.same) {
      std::memcpy(to, row + static_cast<std::size_t>(across_.first.front()) * 3, row_bytes);
      continue;
    }
    std::memcpy(row_.data(), row, box_bytes);
    resize_row(row_.data(), across_.first.data(), across_.taps.data(), across_.weights.data(),
               across_.most, static_cast<std::size_t>(width), to);
  }
}

void Resampler::down(const Box& window, int begin, std::uint8_t* out) {
  const auto row_bytes = static_cast<std::size_t>(window.width) * 3;
  sums_.resize(row_bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(window.height); ++y, out += row_bytes) {
    const std::int32_t* weight = down_.weights.data() + y * static_cast<std::size_t>(down_.most);
    const std::uint8_t* row =
        narrow_.data() + static_cast<std::size_t>(down_.first[y] - begin) * row_bytes;
    if (down_.same) {
      std::memcpy(out, row, row_bytes);
      continue;
    }
    std::fill(sums_.begin(), sums_.end(), kHalf);
    for (int k = 0; k < down_.taps[y]; ++k, row += row_bytes)
      add_row(row, weight[k], row_bytes, sums_.data());
    store_row(sums_.data(), row_bytes, out);
  }
}

void Resampler::resize(const Picture& in, const Box& box, const PictureSize& full,
                       const Box& window, std::uint8_t* out) {
  across_.plan(box.width, full.width, window.left, window.width);
  down_.plan(box.height, full.height, window.top, window.height);
  const int begin = down_.first.front();
  const int end = down_.first.back() + down_.taps.back();
  across(in, box, begin, end, window.width);
  down(window, begin, out);
}

} // namespace troupe::learner::data
