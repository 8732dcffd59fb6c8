#include "learner/nn/patch_products.hpp"

#include <cstring>

namespace troupe::learner {
namespace {

template <int kKernel, class Element>
void planar_line(const Convolution& layer, const Element* image, std::int64_t line, Element* out,
                 std::int64_t patch) {
  for (std::int64_t c = 0; c < layer.in.channels; ++c)
    for (std::int64_t k = 0; k < kKernel; ++k) {
      const Element* row = image + (c * layer.in.height + line * layer.stride + k) * layer.in.width;
      Element* to = out + (c * kKernel + k) * kKernel;
      for (std::int64_t x = 0; x < layer.out.width; ++x)
        std::memcpy(to + x * patch, row + x * layer.stride, kKernel * sizeof(Element));
    }
}

} // namespace

template <class Element>
void line_patches(const Convolution& layer, bool planar, const Element* image, std::int64_t line,
                  Element* out, std::int64_t patch) {
  if (planar)
    return layer.kernel == 4 ? planar_line<4>(layer, image, line, out, patch)
                             : planar_line<3>(layer, image, line, out, patch);
  const std::int64_t run = layer.kernel * layer.in.channels;
  const std::int64_t step = layer.stride * layer.in.channels;
  for (std::int64_t k = 0; k < layer.kernel; ++k) {
    const Element* row = image + (line * layer.stride + k) * layer.in.width * layer.in.channels;
    for (std::int64_t x = 0; x < layer.out.width; ++x)
      std::memcpy(out + x * patch + k * run, row + x * step,
                  static_cast<std::size_t>(run) * sizeof(Element));
  }
}

template void line_patches(const Convolution&, bool, const float*, std::int64_t, float*,
                           std::int64_t);
template void line_patches(const Convolution&, bool, const std::uint16_t*, std::int64_t,
                           std::uint16_t*, std::int64_t);

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
