#include "learner/data/pictures/transform.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

namespace troupe::learner::data {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& value,
                         const std::string& rule) {
  throw std::invalid_argument("transform: " + key + " " + value + " " + rule);
}

void check_range(const char* key, double least, double most, double limit) {
  if (!(least > 0 && least <= most && most <= limit))
    refuse(key, std::to_string(least) + " to " + std::to_string(most),
           "must be above 0, in order, and at most " + std::to_string(limit));
}

int below(int count, env::Random& random) { // 0 … count - 1
  return static_cast<int>(random.uniform() * count);
}

/// torchvision's RandomResizedCrop: ten tries, then the centre with the nearest allowed shape.
Box random_box(const TransformOptions& options, const PictureSize& size, env::Random& random) {
  const double area = static_cast<double>(size.height) * size.width;
  for (int i = 0; i < 10; ++i) {
    const double wanted = area * random.uniform(options.least_area, options.most_area);
    const double ratio =
        std::exp(random.uniform(std::log(options.least_ratio), std::log(options.most_ratio)));
    const int width = static_cast<int>(std::lround(std::sqrt(wanted * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(wanted / ratio)));
    if (width > 0 && width <= size.width && height > 0 && height <= size.height) {
      const int top = below(size.height - height + 1, random);
      const int left = below(size.width - width + 1, random);
      return {top, left, height, width};
    }
  }
  const double ratio = static_cast<double>(size.width) / size.height;
  int height = size.height, width = size.width;
  if (ratio < options.least_ratio)
    height = std::clamp(static_cast<int>(std::lround(width / options.least_ratio)), 1, size.height);
  else if (ratio > options.most_ratio)
    width = std::clamp(static_cast<int>(std::lround(height * options.most_ratio)), 1, size.width);
  return {(size.height - height) / 2, (size.width - width) / 2, height, width};
}

int shorter_side(const TransformOptions& options) {
  return options.resize > 0 ? options.resize
                            : static_cast<int>(std::lround(options.size * 256.0 / 224));
}

/// torchvision's Resize: the shorter side gets the wanted size, the longer one is truncated to a
/// whole number.
PictureSize resized(const TransformOptions& options, const PictureSize& size) {
  const int side = shorter_side(options);
  const auto longer = [side](int a, int b) {
    return static_cast<int>(static_cast<std::int64_t>(side) * a / b);
  };
  return size.width <= size.height ? PictureSize{longer(size.height, size.width), side}
                                   : PictureSize{side, longer(size.width, size.height)};
}

int middle(int whole, int part) { // half a pixel is rounded to even, as in Python
  return static_cast<int>(std::nearbyint((whole - part) / 2.0));
}

/// Converts a box of a picture to the pixels of its smaller copy.
Box scaled_box(const Box& box, const PictureSize& size, const Picture& picture) {
  const auto down = [](int value, int to, int from) {
    return static_cast<int>(static_cast<std::int64_t>(value) * to / from);
  };
  Box result{down(box.top, picture.height, size.height), down(box.left, picture.width, size.width),
             down(box.height, picture.height, size.height),
             down(box.width, picture.width, size.width)};
  result.height = std::max(result.height, 1);
  result.width = std::max(result.width, 1);
  result.top = std::min(result.top, picture.height - result.height);
  result.left = std::min(result.left, picture.width - result.width);
  return result;
}

/// Copies a part of a picture; outside the picture it is black.
void cut(const Picture& picture, const Box& box, std::uint8_t* out) {
  const auto row_bytes = static_cast<std::size_t>(box.width) * 3;
  const int first = std::clamp(-box.left, 0, box.width);
  const int last = std::clamp(picture.width - box.left, first, box.width);
  for (int y = 0; y < box.height; ++y, out += row_bytes) {
    std::memset(out, 0, row_bytes);
    const int row = box.top + y;
    if (row >= 0 && row < picture.height && last > first)
      std::memcpy(out + 3 * first,
                  picture.rgb.data() + static_cast<std::size_t>(row) * picture.row_bytes()
                      + static_cast<std::size_t>(box.left + first) * 3,
                  static_cast<std::size_t>(last - first) * 3);
  }
}

void flip_rows(std::uint8_t* rgb, const PictureSize& size) {
  for (int y = 0; y < size.height; ++y, rgb += static_cast<std::size_t>(size.width) * 3)
    for (int x = 0; 2 * x < size.width - 1; ++x)
      std::swap_ranges(rgb + 3 * x, rgb + 3 * x + 3, rgb + 3 * (size.width - 1 - x));
}

} // namespace

void TransformOptions::check() const {
  if (crop == Crop::none ? size != 0 : size < 1 || size > 4096)
    refuse("size", std::to_string(size),
           crop == Crop::none ? "must be 0 without a crop; choose one to change the size"
                              : "must be from 1 to 4096 pixels");
  if (resize < 0 || resize > 8192 || (resize > 0 && resize < size))
    refuse("resize", std::to_string(resize),
           "must be at least the size, " + std::to_string(size)
               + ", and at most 8192 pixels, or 0 for size · 256 / 224");
  if (padding < 0 || padding > 4096)
    refuse("padding", std::to_string(padding), "must be from 0 to 4096 pixels");
  check_range("area", least_area, most_area, 1);
  check_range("ratio", least_ratio, most_ratio, 100);
  jitter.check();
  if (mean.size() != deviation.size() || (!mean.empty() && mean.size() != 3))
    refuse("mean and deviation",
           std::to_string(mean.size()) + " and " + std::to_string(deviation.size()) + " numbers",
           "must both have 3, or none");
  for (const float value : deviation)
    if (!(value > 0))
      refuse("deviation", std::to_string(value), "must be above 0");
}

TransformOptions training_transform(int size) {
  return {.crop = Crop::random_resized,
          .size = size,
          .flip = true,
          .mean = {0.485F, 0.456F, 0.406F}, // of ImageNet
          .deviation = {0.229F, 0.224F, 0.225F}};
}

TransformOptions evaluation_transform(int size) {
  auto options = training_transform(size);
  options.crop = Crop::centre;
  options.flip = false;
  return options;
}

PictureSize transformed_size(const TransformOptions& options, const PictureSize& size) {
  return options.crop == Crop::none ? size : PictureSize{options.size, options.size};
}

TransformDraw draw_transform(const TransformOptions& options, const PictureSize& size,
                             env::Random& random) {
  TransformDraw draw;
  draw.box = {0, 0, size.height, size.width};
  if (options.crop == Crop::random_resized)
    draw.box = random_box(options, size, random);
  else if (options.crop == Crop::padded)
    draw.box = {
        below(size.height + 2 * options.padding - options.size + 1, random) - options.padding,
        below(size.width + 2 * options.padding - options.size + 1, random) - options.padding,
        options.size, options.size};
  draw.flip = options.flip && random.uniform() < 0.5;
  if (options.jitter.any())
    draw.jitter = draw_jitter(options.jitter, random);
  return draw;
}

int decoding_scale(const TransformOptions& options, const PictureSize& size,
                   const TransformDraw& draw) {
  if (!options.scaled_decoding || options.crop == Crop::none || options.crop == Crop::padded)
    return 1;
  const bool centre = options.crop == Crop::centre;
  const int there =
      centre ? std::min(size.height, size.width) : std::min(draw.box.height, draw.box.width);
  const int wanted = centre ? shorter_side(options) : options.size;
  int scale = 8;
  while (scale > 1 && there / scale < wanted)
    scale /= 2;
  return scale;
}

Transformer::Transformer(const TransformOptions& options) : options_(options) {
  options_.check();
  if (!options_.normalises())
    return;
  normal_.resize(3 * 256);
  for (std::size_t i = 0; i < normal_.size(); ++i)
    normal_[i] =
        (static_cast<float>(i % 256) / 255 - options_.mean[i / 256]) / options_.deviation[i / 256];
}

void Transformer::crop(const Picture& picture, const PictureSize& size, const TransformDraw& draw,
                       const PictureSize& wanted, std::uint8_t* out) {
  const Box whole{0, 0, wanted.height, wanted.width};
  switch (options_.crop) {
  case Crop::none:
  case Crop::padded:
    cut(picture, draw.box, out);
    break;
  case Crop::random_resized:
    resampler_.resize(picture, scaled_box(draw.box, size, picture), wanted, whole, out);
    break;
  case Crop::centre: {
    const auto full = resized(options_, size);
    const Box window{middle(full.height, wanted.height), middle(full.width, wanted.width),
                     wanted.height, wanted.width};
    resampler_.resize(picture, {0, 0, picture.height, picture.width}, full, window, out);
    break;
  }
  }
}

void Transformer::apply(const Picture& picture, const PictureSize& size, const TransformDraw& draw,
                        std::uint8_t* out) {
  const auto wanted = transformed_size(options_, size);
  crop(picture, size, draw, wanted, out);
  if (draw.flip)
    flip_rows(out, wanted);
  if (options_.jitter.any())
    apply_jitter({out, static_cast<std::size_t>(wanted.height) * wanted.width * 3}, draw.jitter);
}

void Transformer::apply(const Picture& picture, const PictureSize& size, const TransformDraw& draw,
                        float* out) {
  const auto wanted = transformed_size(options_, size);
  bytes_.resize(static_cast<std::size_t>(wanted.height) * static_cast<std::size_t>(wanted.width)
                * 3);
  apply(picture, size, draw, bytes_.data());
  for (std::size_t i = 0; i < bytes_.size(); i += 3)
    for (std::size_t c = 0; c < 3; ++c)
      out[i + c] = normal_[256 * c + bytes_[i + c]];
}

} // namespace troupe::learner::data
