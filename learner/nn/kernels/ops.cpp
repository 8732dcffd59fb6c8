#include "learner/nn/kernels/ops.hpp"

#include <algorithm>
#include <utility>

#include <ATen/Parallel.h>

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/parallel.hpp"
#include "learner/nn/kernels/strided.hpp"

namespace troupe::learner {
namespace {

thread_local const ProductChoice* used_products = nullptr;

/// Multiplications from which another thread pays off.
constexpr std::int64_t kFlopsPerThread = 2'000'000;

bool runs_alone(std::int64_t multiplications) {
  return at::get_num_threads() == 1 || multiplications < kFlopsPerThread;
}

bool goes_to_library(Product product, std::int64_t rows, std::int64_t inputs,
                     std::int64_t outputs) {
  return used_products != nullptr && used_products->prefers_library(product, rows, inputs, outputs);
}

/// c[m, n] = a[m, k] * b[k, n] (+ bias[n] if defined) by LibTorch. Splits the rows over threads if
/// that pays.
void library_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                     at::Tensor& c) {
  const auto rows = [&](std::int64_t first, std::int64_t last) {
    const at::AutoDispatchBelowADInplaceOrView without_gradients;
    const at::Tensor some = a.narrow(0, first, last - first);
    at::Tensor out = c.narrow(0, first, last - first);
    if (bias.defined())
      at::addmm_out(out, bias, some, b);
    else
      at::mm_out(out, some, b);
  };
  const std::int64_t work = b.numel();
  if (runs_alone(a.size(0) * work))
    rows(0, a.size(0));
  else
    over_threads(a.size(0), std::max<std::int64_t>(14, kFlopsPerThread / work), rows);
}

/// c[m, n] = a * b on one thread. Packs as much of b at a time as stays in the second-level cache.
/// k is divided where `multiply` divides it, so the bits equal those of one call.
void product_by_blocks(const Strided& a, const Strided& b, const float* bias, at::Tensor& c,
                       std::int64_t k, Workspace& workspace) {
  constexpr std::int64_t kPackedFloats = 1 << 16;
  const KernelTable& kernels = kernel_table();
  const std::int64_t m = c.size(0);
  const std::int64_t n = c.size(1);
  const std::int64_t blocks = std::max<std::int64_t>(1, (k + kProductBlock - 1) / kProductBlock);
  const std::int64_t depth = (k + blocks - 1) / blocks;
  const std::int64_t panels =
      std::max<std::int64_t>(1, kPackedFloats / (depth * kernels.panel_columns));
  const std::int64_t width = std::min(n, panels * kernels.panel_columns);
  float* packed = workspace.floats(depth * rounded_up(width, kernels.panel_columns));
  float* out = c.mutable_data_ptr<float>();
  for (std::int64_t n0 = 0; n0 < n; n0 += width)
    for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
      const std::int64_t columns = std::min(width, n - n0);
      const std::int64_t rows = std::min(depth, k - k0);
      kernels.pack(b.data + k0 * b.row + n0 * b.column, b.row, b.column, rows, columns, packed);
      kernels.multiply(a.data + k0 * a.column, a.row, a.column, packed,
                       k0 == 0 && bias != nullptr ? bias + n0 : nullptr, k0 > 0, out + n0, n, m,
                       columns, rows);
    }
}

/// c[m, n] = a * b. Splits the rows over threads if that pays.
void product(const Strided& a, const Strided& b, const float* bias, at::Tensor& c, std::int64_t k,
             Workspace& workspace) {
  const KernelTable& kernels = kernel_table();
  const std::int64_t m = c.size(0);
  const std::int64_t n = c.size(1);
  const bool alone = runs_alone(m * n * k);
  const bool is_packed = b.column == 1 && b.row == n && n == kernels.panel_columns;
  constexpr std::int64_t kLargeFloats = 1 << 18; // packed size beyond the second-level cache
  if (alone && !is_packed && k * rounded_up(n, kernels.panel_columns) > kLargeFloats)
    return product_by_blocks(a, b, bias, c, k, workspace);
  const float* packed = b.data;
  if (!is_packed) {
    float* space = workspace.floats(k * rounded_up(n, kernels.panel_columns));
    kernels.pack(b.data, b.row, b.column, k, n, space);
    packed = space;
  }
  float* out = c.mutable_data_ptr<float>();
  const auto rows = [&](std::int64_t first, std::int64_t last) {
    kernels.multiply(a.data + first * a.row, a.row, a.column, packed, bias, false, out + first * n,
                     n, last - first, n, k);
  };
  if (alone)
    rows(0, m);
  else
    over_threads(m, std::max<std::int64_t>(14, kFlopsPerThread / (n * k)), rows);
}

const float* data(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}
float* data(at::Tensor& tensor) {
  return tensor.mutable_data_ptr<float>();
}
float* data_or_null(at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

/// Uses LibTorch. gradient is that of y on input, and that of the input of `activation` on output.
void undo_on_device(Activation activation, const at::Tensor& y, at::Tensor& gradient) {
  if (activation == Activation::elu || activation == Activation::norm_elu)
    at::elu_backward_out(gradient, gradient, 1, 1, 1, /*is_result=*/true, y);
  else if (activation == Activation::relu || activation == Activation::norm_relu)
    at::threshold_backward_out(gradient, gradient, y, 0);
  else if (activation == Activation::norm_tanh)
    at::tanh_backward_out(gradient, gradient, y);
}

} // namespace

float* Workspace::floats(std::int64_t count) {
  if (!buffer_.defined() || buffer_.numel() < count)
    buffer_ = at::empty({count}, at::kFloat);
  return buffer_.mutable_data_ptr<float>();
}

std::uint16_t* Workspace::packed(std::int64_t count) {
  if (!packed_.defined() || packed_.numel() < count)
    packed_ = at::empty({count}, at::kBFloat16);
  return static_cast<std::uint16_t*>(packed_.mutable_data_ptr());
}

at::Tensor Workspace::halves(std::int64_t rows, std::int64_t columns, const at::Tensor& like) {
  const std::int64_t count = rows * columns;
  if (!halves_.defined() || halves_.numel() < count || halves_.device() != like.device())
    halves_ = at::empty({count}, like.options().dtype(at::kBFloat16));
  return halves_.narrow(0, 0, count).view({rows, columns});
}

const ProductChoice* use_products(const ProductChoice* choice) {
  return std::exchange(used_products, choice);
}

const ProductChoice* thread_products() {
  return used_products;
}

bool rounding_is_faster(Rounding rounding, std::int64_t rows, std::int64_t inputs,
                        std::int64_t outputs) {
  // Measured with layers 96 to 160 wide on Zen 4. Below it, LibTorch's overhead per call takes
  // longer.
  constexpr std::int64_t kLargeProduct = 2'500'000;
  return used_products != nullptr ? used_products->prefers(rounding, rows, inputs, outputs)
                                  : rows * inputs * outputs >= kLargeProduct;
}

bool uses_kernels(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == at::kFloat;
}

void linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out,
            Workspace& workspace) {
  if (!uses_kernels(x)) {
    at::addmm_out(out, bias, x, weight);
    return;
  }
  const std::int64_t n = weight.size(1);
  if (n == 1)
    return kernel_table().column_product(data(x), data(weight), data(bias), data(out), x.size(0),
                                         x.size(1));
  if (goes_to_library(Product::forward, x.size(0), x.size(1), n))
    return library_product(x, weight, bias, out);
  product({data(x), x.size(1), 1}, {data(weight), n, 1}, data(bias), out, x.size(1), workspace);
}

void linear_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                            at::Tensor& weight_gradient, Workspace& workspace) {
  if (!uses_kernels(x)) {
    at::mm_out(weight_gradient, x.t(), gradient);
    return;
  }
  if (gradient.size(1) == 1)
    return kernel_table().weighted_sum(data(x), data(gradient), data(weight_gradient), x.size(0),
                                       x.size(1));
  if (goes_to_library(Product::weight_gradient, x.size(0), x.size(1), gradient.size(1)))
    return library_product(x.t(), gradient, {}, weight_gradient);
  product({data(x), 1, x.size(1)}, {data(gradient), gradient.size(1), 1}, nullptr, weight_gradient,
          x.size(0), workspace);
}

void linear_input_gradient(const at::Tensor& gradient, const at::Tensor& weight,
                           at::Tensor& input_gradient, Workspace& workspace) {
  if (!uses_kernels(gradient)) {
    at::mm_out(input_gradient, gradient, weight.t());
    return;
  }
  const std::int64_t n = weight.size(1);
  if (goes_to_library(Product::input_gradient, gradient.size(0), weight.size(0), n))
    return library_product(gradient, weight.t(), {}, input_gradient);
  product({data(gradient), n, 1}, {data(weight), 1, n}, nullptr, input_gradient, n, workspace);
}

void join_columns(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  const std::int64_t n = a.size(1), k = b.size(1);
  if (!uses_kernels(a) || !a.is_contiguous() || !b.is_contiguous()) {
    out.narrow(1, 0, n).copy_(a);
    out.narrow(1, n, k).copy_(b);
    return;
  }
  const float* left = data(a);
  const float* right = data(b);
  float* to = data(out);
  for (std::int64_t i = 0; i < a.size(0); ++i, left += n, right += k)
    to = std::copy_n(right, k, std::copy_n(left, n, to));
}

void narrow_into(const at::Tensor& x, at::Tensor& out) {
  if (!uses_kernels(x) || !x.is_contiguous()) {
    out.copy_(x);
    return;
  }
  const auto narrow = kernel_table().narrow;
  if (out.is_contiguous())
    return narrow(data(x), halves_at(out), x.numel());
  for (std::int64_t i = 0; i < x.size(0); ++i)
    narrow(data(x) + i * x.size(1), halves_at(out, i), x.size(1));
}

at::Tensor half_product(const at::Tensor& a, const at::Tensor& b, Workspace& workspace) {
  at::Tensor product = workspace.halves(a.size(0), b.size(1), a);
  at::mm_out(product, a, b);
  return product;
}

void half_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                 at::Tensor& out, Workspace& workspace) {
  const at::Tensor product = half_product(x, weight, workspace);
  if (uses_kernels(out)) {
    kernel_table().widen(halves_at(product), bias.defined() ? data(bias) : nullptr, data(out),
                         out.size(0), out.size(1));
    return;
  }
  if (bias.defined())
    at::add_out(out, product, bias);
  else
    out.copy_(product);
}

void half_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                          at::Tensor& weight_gradient, Workspace& workspace) {
  half_linear(x.t(), gradient, {}, weight_gradient, workspace);
}

void half_input_gradient(const at::Tensor& gradient, const at::Tensor& weight,
                         at::Tensor& input_gradient, Workspace& workspace) {
  half_linear(gradient, weight.t(), {}, input_gradient, workspace);
}

void activate(Activation activation, at::Tensor& x) {
  if (activation != Activation::elu && activation != Activation::relu)
    return;
  if (!uses_kernels(x))
    activation == Activation::elu ? at::elu_(x) : at::relu_(x);
  else if (activation == Activation::elu)
    kernel_table().elu(data(x), x.numel());
  else
    kernel_table().relu(data(x), x.numel());
}

void activate_backward(Activation activation, const at::Tensor& y, at::Tensor& gradient,
                       at::Tensor& bias_gradient) {
  const std::int64_t m = gradient.size(0);
  const std::int64_t n = gradient.size(1);
  if (!uses_kernels(gradient)) {
    undo_on_device(activation, y, gradient);
    if (bias_gradient.defined())
      at::sum_out(bias_gradient, gradient, at::IntArrayRef{0});
  } else if (activation == Activation::elu) {
    kernel_table().elu_backward(data(y), data(gradient), data_or_null(bias_gradient), m, n);
  } else if (activation == Activation::relu) {
    kernel_table().relu_backward(data(y), data(gradient), data_or_null(bias_gradient), m, n);
  } else if (bias_gradient.defined()) {
    kernel_table().column_sums(data(gradient), data(bias_gradient), m, n);
  }
}

bool normalises(Activation activation) {
  return activation >= Activation::norm;
}

AfterNorm after_norm(Activation activation) {
  switch (activation) {
  case Activation::norm_elu:
    return AfterNorm::elu;
  case Activation::norm_relu:
    return AfterNorm::relu;
  case Activation::norm_tanh:
    return AfterNorm::tanh;
  default:
    return AfterNorm::none;
  }
}

NormSums zeroed(at::Tensor& gain, at::Tensor& shift, at::Tensor& bias) {
  for (at::Tensor* tensor : {&gain, &shift, &bias})
    if (tensor->defined())
      tensor->zero_();
  return {data_or_null(gain), data_or_null(shift), data_or_null(bias)};
}

void norm(Activation activation, at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift,
          at::Tensor& y, at::Tensor& inverse) {
  if (uses_kernels(x)) {
    kernel_table().norm(after_norm(activation), data(x), data(gain), data(shift), data(y),
                        data(inverse), x.size(0), x.size(1));
    return;
  }
  const auto [z, mean, deviation] =
      at::native_layer_norm(x, at::IntArrayRef{x.size(1)}, gain, shift, 1e-5);
  inverse.copy_(deviation.flatten());
  x.sub_(mean);
  switch (after_norm(activation)) {
  case AfterNorm::none:
    y.copy_(z);
    return;
  case AfterNorm::elu:
    at::elu_out(y, z);
    return;
  case AfterNorm::relu:
    at::relu_out(y, z);
    return;
  case AfterNorm::tanh:
    at::tanh_out(y, z);
    return;
  }
}

void norm_backward(Activation activation, const at::Tensor& y, const at::Tensor& kept,
                   const at::Tensor& inverse, const at::Tensor& gain, at::Tensor& gradient,
                   at::Tensor& gain_gradient, at::Tensor& shift_gradient,
                   at::Tensor& bias_gradient) {
  if (uses_kernels(y)) {
    kernel_table().norm_backward(
        after_norm(activation), data(y), data(kept), data(inverse), data(gain), data(gradient),
        zeroed(gain_gradient, shift_gradient, bias_gradient), y.size(0), y.size(1));
    return;
  }
  undo_on_device(activation, y, gradient);
  const at::Tensor deviation = inverse.unsqueeze(1);
  const auto [of_x, of_gain, of_shift] = at::native_layer_norm_backward(
      gradient, kept, at::IntArrayRef{y.size(1)}, at::zeros_like(deviation), deviation, gain, gain,
      {true, gain_gradient.defined(), gain_gradient.defined()}); // only the shift's shape matters
  if (gain_gradient.defined()) {
    gain_gradient.copy_(of_gain);
    shift_gradient.copy_(of_shift);
  }
  gradient.copy_(of_x);
  if (bias_gradient.defined())
    at::sum_out(bias_gradient, gradient, at::IntArrayRef{0});
}

at::Tensor tanh_of(const at::Tensor& x) {
  if (!uses_kernels(x))
    return at::tanh(x);
  at::Tensor y = at::empty_like(x);
  kernel_table().tanh(data(x), data(y), x.numel());
  return y;
}

void average_into(at::Tensor& target, const at::Tensor& source, double weight) {
  if (uses_kernels(target))
    kernel_table().lerp(data(target), data(source), static_cast<float>(weight), target.numel());
  else
    target.lerp_(source, weight);
}

bool all_finite(const at::Tensor& tensor, FiniteCheck check) {
  if (!tensor.is_floating_point() || (check == FiniteCheck::on_cpu && !tensor.is_cpu()))
    return true;
  if (uses_kernels(tensor) && tensor.is_non_overlapping_and_dense())
    return kernel_table().all_finite(data(tensor), tensor.numel());
  return at::isfinite(tensor).all().item<bool>();
}

} // namespace troupe::learner
