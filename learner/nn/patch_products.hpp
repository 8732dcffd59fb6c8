#pragma once
// The patches of images, and their products in two precisions.

#include <cstdint>
#include <new>
#include <vector>

#include <torch/types.h>

#include "learner/nn/encoder.hpp"
#include "learner/nn/kernels/amx_product.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

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

/// Allocates memory aligned to 64 bytes.
template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {} // NOLINT: allocators convert
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete (memory, std::align_val_t{64}); }
  bool operator==(const Aligned&) const { return true; }
};
template <class T>
using Array = std::vector<T, Aligned<T>>;
using Floats = Array<float>;

/// New elements are 0.
template <class T>
T* grown(Array<T>& array, std::int64_t count) {
  if (static_cast<std::int64_t>(array.size()) < count)
    array.resize(static_cast<std::size_t>(count));
  return array.data();
}

/// The products of convolutions in float32.
struct WholeProducts {
  using Element = float; // of patches
  static constexpr const char* kName = "float32 patches";
  static constexpr std::int64_t kRows = 1;      // patches have memory for a multiple of these
  static constexpr std::int64_t kChunk = 32768; // elements of the patches that make a chunk
  /// From one patch to the next.
  static std::int64_t row(const Convolution& c) { return c.patch(); }
  static const float* elements(const float* image, std::int64_t, Floats&) { return image; }

  static void pack(const float* weight, const Convolution& c, Floats& packed) {
    kernel_table().pack(weight, c.out.channels, 1, c.patch(), c.out.channels,
                        grown(packed, c.patch() * panels(c.out.channels)));
  }
  static void pack_transposed(const float* weight, const Convolution& c, Floats& packed) {
    kernel_table().pack(weight, 1, c.out.channels, c.out.channels, c.patch(),
                        grown(packed, c.out.channels * panels(c.patch())));
  }
  static void forward(const Convolution& c, const float* patches, std::int64_t rows,
                      const Floats& weight, const float* bias, float* out) {
    kernel_table().multiply(patches, c.patch(), 1, weight.data(), bias, false, out, c.out.channels,
                            rows, c.out.channels, c.patch());
  }
  /// Adds to the sums, [patch, channels].
  static void weight_gradient(const Convolution& c, const float* patches, std::int64_t rows,
                              const float* gradient, float* sums, Floats& packed, Floats&) {
    const std::int64_t channels = c.out.channels;
    if (channels != kernel_table().panel_columns) {
      kernel_table().pack(gradient, channels, 1, rows, channels,
                          grown(packed, rows * panels(channels)));
      gradient = packed.data();
    }
    kernel_table().multiply(patches, 1, c.patch(), gradient, nullptr, true, sums, channels,
                            c.patch(), channels, rows);
  }
  static at::Tensor sum_by_patch(float* sums, const Convolution& c) {
    return at::from_blob(sums, {c.patch(), c.out.channels});
  }
  /// Writes the gradients of patches.
  static void input_gradient(const Convolution& c, const float* gradient, std::int64_t rows,
                             const Floats& transposed, float* patches, Floats&) {
    kernel_table().multiply(gradient, c.out.channels, 1, transposed.data(), nullptr, false, patches,
                            c.patch(), rows, c.patch(), c.out.channels);
  }

private:
  static std::int64_t panels(std::int64_t columns) {
    return rounded_up(columns, kernel_table().panel_columns);
  }
};

/// The products of convolutions with AMX, of factors in bfloat16.
struct RoundedProducts {
  using Element = std::uint16_t;
  using Elements = Array<Element>;
  static constexpr const char* kName = "patches rounded to bfloat16";
  static constexpr std::int64_t kRows = kAmxRows;
  static constexpr std::int64_t kChunk = 16384;
  static std::int64_t row(const Convolution& c) { return rounded_up(c.patch(), kAmxColumns); }
  static const Element* elements(const float* image, std::int64_t count, Elements& space) {
    kernel_table().narrow(image, grown(space, count), count);
    return space.data();
  }

  static void pack(const float* weight, const Convolution& c, Elements& packed) {
    pack_amx(Strided{weight, c.out.channels, 1}, c.patch(), c.out.channels, 1,
             grown(packed, amx_packed_size(c.patch(), c.out.channels)));
  }
  static void pack_transposed(const float* weight, const Convolution& c, Elements& packed) {
    pack_amx(Strided{weight, 1, c.out.channels}, c.out.channels, c.patch(), 1,
             grown(packed, amx_packed_size(c.out.channels, c.patch())));
  }
  static void forward(const Convolution& c, const Element* patches, std::int64_t rows,
                      const Elements& weight, const float* bias, float* out) {
    multiply_amx(RoundedRows{patches, row(c)}, {.packed = weight.data(),
                                                .bias = bias,
                                                .adds = false,
                                                .c = out,
                                                .c_row = c.out.channels,
                                                .m = rows,
                                                .n = c.out.channels,
                                                .k = c.patch()});
  }
  /// Adds to the sums, [channels, patch].
  static void weight_gradient(const Convolution& c, const Element* patches, std::int64_t rows,
                              const float* gradient, float* sums, Elements& packed,
                              Elements& scratch) {
    pack_amx(RoundedRows{patches, row(c)}, rows, c.patch(),
             grown(packed, amx_packed_size(rows, c.patch())));
    multiply_amx(Strided{gradient, 1, c.out.channels},
                 {.packed = packed.data(),
                  .bias = nullptr,
                  .adds = true,
                  .c = sums,
                  .c_row = c.patch(),
                  .m = c.out.channels,
                  .n = c.patch(),
                  .k = rows},
                 grown(scratch, amx_scratch_size(rows)));
  }
  static at::Tensor sum_by_patch(float* sums, const Convolution& c) {
    return at::from_blob(sums, {c.out.channels, c.patch()}).t();
  }
  static void input_gradient(const Convolution& c, const float* gradient, std::int64_t rows,
                             const Elements& transposed, float* patches, Elements& scratch) {
    multiply_amx(Strided{gradient, c.out.channels, 1},
                 {.packed = transposed.data(),
                  .bias = nullptr,
                  .adds = false,
                  .c = patches,
                  .c_row = c.patch(),
                  .m = rows,
                  .n = c.patch(),
                  .k = c.out.channels},
                 grown(scratch, amx_scratch_size(c.out.channels)));
  }
};

} // namespace troupe::learner
