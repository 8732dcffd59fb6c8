#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {

/// The arithmetic of small networks with hand-written derivatives, without autograd: the kernels of
/// kernel_table.hpp for float32 on the CPU, LibTorch's operators for every other type and device.
/// Tensors are dense and row-major and sized by the caller; results are overwritten. One thread per
/// Workspace.

/// Scratch memory that grows to the largest use.
class Workspace {
public:
  float* floats(std::int64_t count);
  /// [rows, columns] bfloat16 on the device of `like`, valid until the next call.
  at::Tensor halves(std::int64_t rows, std::int64_t columns, const at::Tensor& like);

private:
  at::Tensor halves_;
  at::Tensor buffer_;
};

/// norm…: a LayerNorm, then the rest.
enum class Activation : std::uint8_t { none, elu, relu, norm, norm_elu, norm_relu, norm_tanh };
bool normalises(Activation activation);
AfterNorm after_norm(Activation activation);

bool uses_kernels(const at::Tensor& tensor); // float32, CPU

/// out[m, n] = x[m, k] * weight[k, n] + bias[n]
void linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out,
            Workspace& workspace);
/// weight_gradient[k, n] = x^T * gradient
void linear_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                            at::Tensor& weight_gradient, Workspace& workspace);
/// input_gradient[m, k] = gradient[m, n] * weight[k, n]^T; `weight` may be some rows of the whole.
void linear_input_gradient(const at::Tensor& gradient, const at::Tensor& weight,
                           at::Tensor& input_gradient, Workspace& workspace);

/// out = x, of the same shape, in bfloat16.
void narrow_into(const at::Tensor& x, at::Tensor& out);
/// The three products with factors in bfloat16, by LibTorch, which adds in float32 and rounds the
/// sum to bfloat16. The result is float32; `bias` may be undefined.
void half_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                 at::Tensor& out, Workspace& workspace);
void half_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                          at::Tensor& weight_gradient, Workspace& workspace);
void half_input_gradient(const at::Tensor& gradient, const at::Tensor& weight,
                         at::Tensor& input_gradient, Workspace& workspace);

/// In place, elu or relu.
void activate(Activation activation, at::Tensor& x);
/// gradient: of y in, of x out. bias_gradient (when defined): its column sums.
void activate_backward(Activation activation, const at::Tensor& y, at::Tensor& gradient,
                       at::Tensor& bias_gradient);

/// For one that normalises: y = activation(layer_norm(x) * gain + shift); x becomes what
/// norm_backward() takes for `kept`, inverse[m] = 1 / sigma.
void norm(Activation activation, at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
          at::Tensor& y, at::Tensor& inverse);
/// gradient: of y in, of x out. The gradients of gain and shift are both defined or both undefined;
/// bias_gradient (when defined): the column sums of the gradient of x.
void norm_backward(Activation activation, const at::Tensor& y, const at::Tensor& kept,
                   const at::Tensor& inverse, const at::Tensor& gain, at::Tensor& gradient,
                   at::Tensor& gain_gradient, at::Tensor& shift_gradient,
                   at::Tensor& bias_gradient);

at::Tensor tanh_of(const at::Tensor& x); // dense x
/// target += weight * (source - target), flat.
void average_into(at::Tensor& target, const at::Tensor& source, double weight);
bool all_finite(const at::Tensor& tensor);

} // namespace troupe::learner
