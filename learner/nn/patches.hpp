#pragma once

#include <cstdint>

#include "learner/nn/encoder.hpp"

namespace troupe::learner {

/// Writes the patches under one line of output pixels, each `row` elements after the one before.
/// Layer 0 reads a planar image [channels, height, width], the other layers read [height, width,
/// channels]. Element: float, or std::uint16_t for bfloat16.
template <class Element>
void line_patches(const Convolution& layer, bool planar, const Element* image, std::int64_t line,
                  Element* out, std::int64_t row);

/// Adds the gradients of one line's patches to the gradient of the image [height, width, channels].
void add_line_patches(const Convolution& layer, const float* patches, std::int64_t line,
                      float* image);

} // namespace troupe::learner
