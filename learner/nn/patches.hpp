#pragma once

#include <cstdint>

#include "learner/nn/encoder.hpp"

namespace troupe::learner {

/// Writes the patches under one line of output pixels: out[out.width][patch]. Layer 0 reads a
/// planar image [channels, height, width], the other layers read [height, width, channels].
void line_patches(const Convolution& layer, bool planar, const float* image, std::int64_t line,
                  float* out);

/// Adds the gradients of one line's patches to the gradient of the image [height, width, channels].
void add_line_patches(const Convolution& layer, const float* patches, std::int64_t line,
                      float* image);

} // namespace troupe::learner
