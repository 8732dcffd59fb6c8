#include "learner/nn/patches.hpp"

#include <cstring>

namespace troupe::learner {
namespace {

template <int kKernel>
void planar_line(const Convolution& layer, const float* image, std::int64_t line, float* out) {
  const std::int64_t patch = layer.patch();
  for (std::int64_t c = 0; c < layer.in.channels; ++c)
    for (std::int64_t k = 0; k < kKernel; ++k) {
      const float* row = image + (c * layer.in.height + line * layer.stride + k) * layer.in.width;
      float* to = out + (c * kKernel + k) * kKernel;
      for (std::int64_t x = 0; x < layer.out.width; ++x)
        std::memcpy(to + x * patch, row + x * layer.stride, kKernel * sizeof(float));
    }
}

} // namespace

void line_patches(const Convolution& layer, bool planar, const float* image, std::int64_t line,
                  float* out) {
  if (planar)
    return layer.kernel == 4 ? planar_line<4>(layer, image, line, out)
                             : planar_line<3>(layer, image, line, out);
  const std::int64_t run = layer.kernel * layer.in.channels;
  const std::int64_t patch = layer.patch();
  const std::int64_t step = layer.stride * layer.in.channels;
  for (std::int64_t k = 0; k < layer.kernel; ++k) {
    const float* row = image + (line * layer.stride + k) * layer.in.width * layer.in.channels;
    for (std::int64_t x = 0; x < layer.out.width; ++x)
      std::memcpy(out + x * patch + k * run, row + x * step,
                  static_cast<std::size_t>(run) * sizeof(float));
  }
}

void add_line_patches(const Convolution& layer, const float* patches, std::int64_t line,
                      float* image) {
  const std::int64_t run = layer.kernel * layer.in.channels;
  const std::int64_t patch = layer.patch();
  const std::int64_t step = layer.stride * layer.in.channels;
  for (std::int64_t k = 0; k < layer.kernel; ++k) {
    float* row = image + (line * layer.stride + k) * layer.in.width * layer.in.channels;
    for (std::int64_t x = 0; x < layer.out.width; ++x) {
      const float* from = patches + x * patch + k * run;
      float* to = row + x * step;
      for (std::int64_t i = 0; i < run; ++i)
        to[i] += from[i];
    }
  }
}

} // namespace troupe::learner
