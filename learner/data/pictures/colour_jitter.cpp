#include "learner/data/pictures/colour_jitter.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::learner::data {
namespace {

void check_amount(const char* key, double value, double most) {
  if (!(value >= 0 && value <= most))
    throw std::invalid_argument("colour jitter: " + std::string(key) + " " + std::to_string(value)
                                + " must be from 0 to " + std::to_string(most));
}

std::uint8_t level(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.F, 255.F)); // truncated, as in torchvision
}

std::uint8_t grey_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>(0.2989F * static_cast<float>(rgb[0])
                                   + 0.587F * static_cast<float>(rgb[1])
                                   + 0.114F * static_cast<float>(rgb[2]));
}

/// Mixes each value with one fixed value, by a table.
void mix_with(std::span<std::uint8_t> rgb, float factor, float other) {
  std::array<std::uint8_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = level(factor * static_cast<float>(i) + (1 - factor) * other);
  for (auto& value : rgb)
    value = table[value];
}

struct Hsv {
  float hue = 0; // 0 to 1
  float saturation = 0;
  float value = 0;
};

Hsv to_hsv(float red, float green, float blue) {
  const float most = std::max({red, green, blue}), least = std::min({red, green, blue});
  if (most == least)
    return {0, 0, most};
  const float range = most - least;
  const float r = (most - red) / range, g = (most - green) / range, b = (most - blue) / range;
  const float sixths = most == red ? b - g : most == green ? 2 + r - b : 4 + g - r;
  return {std::fmod(sixths / 6 + 1, 1.F), range / most, most};
}

void to_rgb(const Hsv& hsv, float* rgb) {
  const float sixths = hsv.hue * 6;
  const float sector = std::floor(sixths);
  const float rest = sixths - sector;
  const auto cut = [](float x) { return std::clamp(x, 0.F, 1.F); };
  const float v = hsv.value, p = cut(v * (1 - hsv.saturation)),
              q = cut(v * (1 - hsv.saturation * rest)),
              t = cut(v * (1 - hsv.saturation * (1 - rest)));
  const float table[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(table[static_cast<int>(sector) % 6], 3, rgb);
}

} // namespace

void JitterOptions::check() const {
  check_amount("brightness", brightness, 10);
  check_amount("contrast", contrast, 10);
  check_amount("saturation", saturation, 10);
  check_amount("hue", hue, 0.5);
}

JitterDraw draw_jitter(const JitterOptions& options, env::Random& random) {
  JitterDraw draw;
  for (std::size_t i = 3; i > 0; --i)
    std::swap(draw.order[i],
              draw.order[static_cast<std::size_t>(random.uniform() * static_cast<double>(i + 1))]);
  const double around[3] = {options.brightness, options.contrast, options.saturation};
  for (std::size_t i = 0; i < 3; ++i)
    draw.amounts[i] = random.uniform(std::max(0.0, 1 - around[i]), 1 + around[i]);
  draw.amounts[3] = random.uniform(-options.hue, options.hue);
  return draw;
}

void adjust_brightness(std::span<std::uint8_t> rgb, double factor) {
  mix_with(rgb, static_cast<float>(factor), 0);
}

void adjust_contrast(std::span<std::uint8_t> rgb, double factor) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rgb.size(); i += 3)
    sum += grey_of(&rgb[i]);
  mix_with(rgb, static_cast<float>(factor),
           static_cast<float>(static_cast<double>(sum) / static_cast<double>(rgb.size() / 3)));
}

void adjust_saturation(std::span<std::uint8_t> rgb, double factor) {
  const auto times = static_cast<float>(factor);
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    const float grey = (1 - times) * static_cast<float>(grey_of(&rgb[i]));
    for (std::size_t c = 0; c < 3; ++c)
      rgb[i + c] = level(times * static_cast<float>(rgb[i + c]) + grey);
  }
}

void adjust_hue(std::span<std::uint8_t> rgb, double turns) {
  const auto turn = static_cast<float>(turns);
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    Hsv hsv = to_hsv(static_cast<float>(rgb[i]) / 255, static_cast<float>(rgb[i + 1]) / 255,
                     static_cast<float>(rgb[i + 2]) / 255);
    hsv.hue += turn;
    hsv.hue -= std::floor(hsv.hue);
    float changed[3];
    to_rgb(hsv, changed);
    for (std::size_t c = 0; c < 3; ++c)
      rgb[i + c] = static_cast<std::uint8_t>(changed[c] * 255.999F);
  }
}

void apply_jitter(std::span<std::uint8_t> rgb, const JitterDraw& draw) {
  for (const Jitter kind : draw.order) {
    const double amount = draw.amounts[static_cast<std::size_t>(kind)];
    if (kind == Jitter::hue ? amount == 0 : amount == 1)
      continue;
    switch (kind) {
    case Jitter::brightness:
      adjust_brightness(rgb, amount);
      break;
    case Jitter::contrast:
      adjust_contrast(rgb, amount);
      break;
    case Jitter::saturation:
      adjust_saturation(rgb, amount);
      break;
    case Jitter::hue:
      adjust_hue(rgb, amount);
      break;
    }
  }
}

} // namespace troupe::learner::data
