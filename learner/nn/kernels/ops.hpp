#pragma once

#include <cstdint>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/product_choice.hpp"

namespace troupe::learner {

/// The arithmetic of small networks with hand-written derivatives, without autograd. It uses the
/// kernels of kernel_table.hpp for float32 on the CPU, and LibTorch's operators for every other
/// type and device. Tensors are dense, row-major and sized by the caller; results are overwritten.
/// One thread per Workspace.

/// While it lives, this thread's LibTorch operators leave out what they do for autograd. On a small
/// tensor that is half of their time. No tensor may require a gradient meanwhile.
class WithoutAutograd {
private:
  at::NoGradGuard no_gradient_;
  at::AutoDispatchBelowADInplaceOrView below_;
};

/// The bits of a bfloat16 tensor's rows from `row`.
inline std::uint16_t* halves_at(const at::Tensor& halves, std::int64_t row = 0) {
  return static_cast<std::uint16_t*>(halves.mutable_data_ptr()) + row * halves.stride(0);
}

/// Scratch memory that grows to the largest size used.
class Workspace {
public:
  float* floats(std::int64_t count);
  /// Memory for packed factors in bfloat16.
  std::uint16_t* packed(std::int64_t count);
  /// Returns [rows, columns] of bfloat16 on the device of `like`, valid until the next call.
  at::Tensor halves(std::int64_t rows, std::int64_t columns, const at::Tensor& like);

private:
  at::Tensor halves_;
  at::Tensor packed_;
  at::Tensor buffer_;
};

/// norm…: a LayerNorm, then the activation.
enum class Activation : std::uint8_t { none, elu, relu, norm, norm_elu, norm_relu, norm_tanh };
bool normalises(Activation activation);
AfterNorm after_norm(Activation activation);

bool uses_kernels(const at::Tensor& tensor); // float32, CPU

/// Returns the smallest multiple of `step` that is not below `value`.
constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// Lets this thread's float32 products on the CPU go to LibTorch's library where `choice` prefers
/// it. Null, the default, uses the kernels, whose results do not depend on the number of threads.
/// `choice` must outlive its use. Returns the previous value.
const ProductChoice* use_products(const ProductChoice* choice);
/// What this thread uses.
const ProductChoice* thread_products();

/// Whether a CPU computes the three products of a layer faster with rounded factors: by the
/// measurements of use_products(), or else by the number of multiplications.
bool rounding_is_faster(Rounding rounding, std::int64_t rows, std::int64_t inputs,
                        std::int64_t outputs);

/// out[m, n] = x[m, k] * weight[k, n] + bias[n]
void linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out,
            Workspace& workspace);
/// weight_gradient[k, n] = x^T * gradient
void linear_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                            at::Tensor& weight_gradient, Workspace& workspace);
/// input_gradient[m, k] = gradient[m, n] * weight[k, n]^T. `weight` may be a range of rows of a
/// larger weight.
void linear_input_gradient(const at::Tensor& gradient, const at::Tensor& weight,
                           at::Tensor& input_gradient, Workspace& workspace);

/// out[m, n + k] = the rows of a[m, n], each with those of b[m, k] after it.
void join_columns(const at::Tensor& a, const at::Tensor& b, at::Tensor& out);
/// out = x, converted to bfloat16; both have the same shape. Rows of `out` may be further apart.
void narrow_into(const at::Tensor& x, at::Tensor& out);
/// a * b with bfloat16 factors, by LibTorch, which adds in float32 and rounds the sum to bfloat16.
/// The result is in the workspace's halves().
at::Tensor half_product(const at::Tensor& a, const at::Tensor& b, Workspace& workspace);
/// The three products of a layer by half_product(), converted to float32; `bias` may be undefined.
void half_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                 at::Tensor& out, Workspace& workspace);
void half_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                          at::Tensor& weight_gradient, Workspace& workspace);
void half_input_gradient(const at::Tensor& gradient, const at::Tensor& weight,
                         at::Tensor& input_gradient, Workspace& workspace);

/// Applies elu or relu in place.
void activate(Activation activation, at::Tensor& x);
/// gradient is that of y on input, and that of x on output. bias_gradient receives its column sums
/// if defined.
void activate_backward(Activation activation, const at::Tensor& y, at::Tensor& gradient,
                       at::Tensor& bias_gradient);

/// For an activation that normalises: y = activation(layer_norm(x) * gain + shift). x becomes the
/// `kept` argument of norm_backward(), and inverse[m] = 1 / sigma.
void norm(Activation activation, at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
          at::Tensor& y, at::Tensor& inverse);
/// gradient is that of y on input, and that of x on output. The gradients of gain and shift must be
/// both defined or both undefined. bias_gradient receives the column sums of the gradient of x if
/// defined.
void norm_backward(Activation activation, const at::Tensor& y, const at::Tensor& kept,
                   const at::Tensor& inverse, const at::Tensor& gain, at::Tensor& gradient,
                   at::Tensor& gain_gradient, at::Tensor& shift_gradient,
                   at::Tensor& bias_gradient);

/// Sets the gradients that are defined to zero, for sums by blocks of rows.
NormSums zeroed(at::Tensor& gain, at::Tensor& shift, at::Tensor& bias);

at::Tensor tanh_of(const at::Tensor& x); // x must be dense
/// target += weight * (source - target), both flat.
void average_into(at::Tensor& target, const at::Tensor& source, double weight);

/// Which tensors all_finite() reads. `on_cpu` takes those on other devices for finite, because it
/// would have to wait for them.
enum class FiniteCheck : std::uint8_t { everywhere, on_cpu };
/// Whether all elements are finite; whole numbers are.
bool all_finite(const at::Tensor& tensor, FiniteCheck check = FiniteCheck::everywhere);

} // namespace troupe::learner
