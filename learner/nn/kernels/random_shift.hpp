#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learner {

/// A random number generator whose state is one integer (splitmix64), which is saved and restored
/// with a run.
class Random {
public:
  explicit Random(std::uint64_t state) : state_(state) {}
  std::uint64_t next();
  /// Uniform in [0, bound), apart from a bias below 2^-32.
  std::uint32_t below(std::uint32_t bound);
  std::uint64_t state() const { return state_; }
  void set_state(std::uint64_t state) { state_ = state; }

private:
  std::uint64_t state_;
};

/// The shift of an image by (y, x) pixels: out(r, c) = in(clamp(r + y), clamp(c + x)).
struct Shift {
  std::int32_t y = 0;
  std::int32_t x = 0;
};

/// Draws one shift per image, uniform in [-pixels, pixels] in each direction.
void draw_shifts(Random& random, int pixels, std::vector<Shift>& shifts);

struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t size() const { return channels * height * width; }
};

/// Shifts one image [channels, height, width] with replicated borders.
void shift_bytes(const std::uint8_t* image, const ImageShape& shape, Shift shift,
                 std::uint8_t* out);

/// Shifts one image [channels, height, width] with replicated borders, and converts it: out = in /
/// 255 - 0.5. scratch: shape.size() bytes.
void shift_image(const std::uint8_t* image, const ImageShape& shape, Shift shift,
                 std::uint8_t* scratch, float* out);

} // namespace troupe::learner
