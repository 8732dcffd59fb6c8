#pragma once

#include <cstdint>

namespace troupe::learner {

/// Batch norm followed by ReLU over dense [rows, channels], on one thread. Element is float, or
/// uint16_t for the bits of a bfloat16. Per-channel numbers are float32. NaN inputs give NaN
/// outputs.
template <class Element>
struct ChannelKernels {
  /// sums += x - shift, squares += (x - shift)^2, column by column.
  void (*moments)(const Element* x, const float* shift, float* sums, float* squares,
                  std::int64_t rows, std::int64_t channels);
  /// y = max(x * scale + offset + residual, 0); residual null: 0.
  void (*apply)(const Element* x, const Element* residual, const float* scale, const float* offset,
                Element* y, std::int64_t rows, std::int64_t channels);
  /// g = gradient where the ReLU let the value through, else 0. If y is given, y determines this,
  /// and g is also written to `masked`; if y and masked are null, x * scale + offset determines it.
  /// sums += g, products += g * (x - mean).
  void (*gradient_sums)(const Element* gradient, const Element* x, const Element* y,
                        const float* scale, const float* offset, const float* mean, Element* masked,
                        float* sums, float* products, std::int64_t rows, std::int64_t channels);
  /// out = g * scale + x * slope + constant. g is as above, determined by x * scale + offset; with
  /// a null offset, it is the gradient itself.
  void (*input_gradient)(const Element* gradient, const Element* x, const float* scale,
                         const float* offset, const float* slope, const float* constant,
                         Element* out, std::int64_t rows, std::int64_t channels);
};

struct NormKernels {
  ChannelKernels<float> float32;
  ChannelKernels<std::uint16_t> bfloat16;
};

/// The kernels for the fastest instruction set of this processor.
const NormKernels& norm_kernels();
/// Like kernel_table(name).
const NormKernels* norm_kernels(const char* name);

} // namespace troupe::learner
