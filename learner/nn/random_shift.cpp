#include "learner/nn/random_shift.hpp"

#include <algorithm>

#include "learner/nn/kernel_table.hpp"

namespace troupe::learner {

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint32_t Random::below(std::uint32_t bound) {
  return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
}

void draw_shifts(Random& random, int pixels, std::vector<Shift>& shifts) {
  if (pixels == 0) {
    std::fill(shifts.begin(), shifts.end(), Shift{});
    return;
  }
  const auto bound = static_cast<std::uint32_t>(2 * pixels + 1);
  for (Shift& shift : shifts) {
    shift.y = static_cast<std::int32_t>(random.below(bound)) - pixels;
    shift.x = static_cast<std::int32_t>(random.below(bound)) - pixels;
  }
}

void shift_image(const std::uint8_t* image, const ImageShape& shape, Shift shift, float* out) {
  const KernelTable& kernels = kernel_table();
  constexpr float kScale = 1.0f / 255.0f;
  constexpr float kOffset = -0.5f;
  const std::int64_t width = shape.width;
  if (shift.x == 0 && shift.y == 0)
    return kernels.bytes_to_float(image, out, shape.size(), kScale, kOffset);
  const std::int64_t first =
      std::clamp<std::int64_t>(-shift.x, 0, width); // columns left of it: replicated
  const std::int64_t last = std::clamp<std::int64_t>(width - shift.x, 0, width);
  for (std::int64_t c = 0; c < shape.channels; ++c)
    for (std::int64_t y = 0; y < shape.height; ++y, out += width) {
      const std::int64_t from = std::clamp<std::int64_t>(y + shift.y, 0, shape.height - 1);
      const std::uint8_t* row = image + (c * shape.height + from) * width;
      if (first < last)
        kernels.bytes_to_float(row + first + shift.x, out + first, last - first, kScale, kOffset);
      std::fill(out, out + first, static_cast<float>(row[0]) * kScale + kOffset);
      std::fill(out + last, out + width, static_cast<float>(row[width - 1]) * kScale + kOffset);
    }
}

} // namespace troupe::learner
