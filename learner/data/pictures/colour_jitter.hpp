#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "env/random.hpp"

namespace troupe::learner::data {

/// The ranges of colour changes, as in torchvision's ColorJitter. Brightness, contrast and
/// saturation are multiplied by 1 ± amount (not below 0); the hue is rotated by ± hue (0 to 0.5,
/// the whole circle).
struct JitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;

  bool any() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
  /// Throws std::invalid_argument naming the option that is out of range.
  void check() const;
};

enum class Jitter : std::uint8_t { brightness, contrast, saturation, hue };

/// The changes drawn for one picture, in order.
struct JitterDraw {
  std::array<Jitter, 4> order = {Jitter::brightness, Jitter::contrast, Jitter::saturation,
                                 Jitter::hue};
  std::array<double, 4> amounts = {1, 1, 1, 0}; // by kind: factors; the hue's turns of the circle
};

JitterDraw draw_jitter(const JitterOptions& options, env::Random& random);

/// Change RGB values in place by torchvision's formulas for byte tensors.
void adjust_brightness(std::span<std::uint8_t> rgb, double factor);
void adjust_contrast(std::span<std::uint8_t> rgb, double factor);
void adjust_saturation(std::span<std::uint8_t> rgb, double factor);
void adjust_hue(std::span<std::uint8_t> rgb, double turns);
void apply_jitter(std::span<std::uint8_t> rgb, const JitterDraw& draw);

} // namespace troupe::learner::data
