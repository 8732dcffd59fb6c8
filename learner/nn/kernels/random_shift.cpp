#include "learner/nn/kernels/random_shift.hpp"

#include <algorithm>
#include <cstring>

#include "env/split_mix.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {

std::uint64_t Random::next() {
  return env::split_mix(state_);
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

void shift_bytes(const std::uint8_t* image, const ImageShape& shape, Shift shift,
                 std::uint8_t* out) {
  // Columns [first, last) come from the row; the others repeat its first or last pixel.
  const std::int64_t width = shape.width;
  const auto first = std::clamp<std::int64_t>(-shift.x, 0, width);
  const auto last = std::clamp<std::int64_t>(width - shift.x, 0, width);
  for (std::int64_t c = 0; c < shape.channels; ++c)
    for (std::int64_t y = 0; y < shape.height; ++y, out += width) {
      const auto from = std::clamp<std::int64_t>(y + shift.y, 0, shape.height - 1);
      const std::uint8_t* row = image + (c * shape.height + from) * width;
      if (first < last)
        std::memcpy(out + first, row + first + shift.x, static_cast<std::size_t>(last - first));
      std::fill(out, out + first, row[0]);
      std::fill(out + last, out + width, row[width - 1]);
    }
}

void shift_image(const std::uint8_t* image, const ImageShape& shape, Shift shift,
                 std::uint8_t* scratch, float* out) {
  const bool moves = shift.x != 0 || shift.y != 0;
  if (moves)
    shift_bytes(image, shape, shift, scratch);
  kernel_table().bytes_to_float(moves ? scratch : image, out, shape.size(), 1.0f / 255.0f, -0.5f);
}

} // namespace troupe::learner
