#include "learner/nn/kernels/rounded_product.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "env/amx.hpp"
#include "learner/nn/kernels/amx_product.hpp"
#include "learner/nn/kernels/parallel.hpp"

namespace troupe::learner {
namespace {

thread_local bool uses_amx = true;

/// Splits m rows of a product over threads if that pays. `parts`: of the factors.
template <class Rows>
void split_rows(std::int64_t m, std::int64_t n, std::int64_t k, int parts, Rows&& rows) {
  constexpr std::int64_t kFewest = 12'000'000; // multiplications
  const std::int64_t products = parts == 1 ? 1 : 3;
  if (at::get_num_threads() == 1 || m * n * k * products < kFewest)
    rows(0, m);
  else
    over_threads(m, kAmxRows, rows);
}

/// c[m, n] = a * b with b packed.
void rounded_product(const Strided& a, const std::uint16_t* packed, int parts, const float* bias,
                     at::Tensor& c, std::int64_t k) {
  const std::int64_t m = c.size(0);
  const std::int64_t n = c.size(1);
  float* out = c.mutable_data_ptr<float>();
  split_rows(m, n, k, parts, [&](std::int64_t first, std::int64_t last) {
    static thread_local Workspace lane;
    multiply_amx({a.data + first * a.row, a.row, a.column},
                 {.packed = packed,
                  .parts = parts,
                  .bias = bias,
                  .adds = false,
                  .c = out + first * n,
                  .c_row = n,
                  .m = last - first,
                  .n = n,
                  .k = k},
                 lane.packed(parts * amx_scratch_size(k)));
  });
}

RoundedRows rounded_rows(const at::Tensor& x, std::int64_t first = 0) {
  return {static_cast<const std::uint16_t*>(x.const_data_ptr()) + first * x.stride(0), x.stride(0)};
}

const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

/// The matrix, read by rows or as its transpose.
Strided by_rows(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<float>(), matrix.size(1), 1};
}
Strided by_columns(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<float>(), 1, matrix.size(1)};
}

} // namespace

bool multiplies_rounded() {
  static const bool executes = std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr && env::executes_amx();
  return executes && uses_amx;
}

bool use_amx(bool on) {
  return std::exchange(uses_amx, on);
}

Halves::Halves(const at::Tensor& flat, Rounding rounding) {
  const bool packs = uses_kernels(flat) && multiplies_rounded();
  if (rounding == Rounding::none || (rounding == Rounding::two_parts && !packs))
    return;
  rounding_ = rounding;
  edition_ = std::make_shared<std::uint64_t>(0);
  if (!packs)
    flat_ = at::empty_like(flat, at::kBFloat16);
  refresh(flat);
}

void Halves::refresh(const at::Tensor& flat) {
  if (edition_ == nullptr)
    return;
  ++*edition_;
  if (flat_.defined())
    narrow_into(flat, flat_);
}

RoundedWeight::RoundedWeight(at::Tensor weight, const Halves& halves)
    : weight_(std::move(weight)), rounding_(halves.rounding()), edition_(halves.edition()) {}

Rounding RoundedWeight::rounding(std::int64_t rows) const {
  return rounding_is_faster(rounding_, rows, weight_.size(0), weight_.size(1)) ? rounding_
                                                                               : Rounding::none;
}

const std::uint16_t* RoundedWeight::packed(Packed& one, bool transposed) {
  const std::int64_t k = weight_.size(transposed ? 1 : 0);
  const std::int64_t n = weight_.size(transposed ? 0 : 1);
  if (!one.memory.defined())
    one.memory = at::empty({parts() * amx_packed_size(k, n)}, at::kBFloat16);
  if (one.edition != *edition_)
    pack_amx(transposed ? by_columns(weight_) : by_rows(weight_), k, n, parts(),
             halves_at(one.memory));
  one.edition = *edition_;
  return halves_at(one.memory);
}

bool may_round(const at::Tensor& weight, const Halves& halves, bool exact) {
  constexpr std::int64_t kWide = 32;
  if (halves.rounding() == Rounding::one_part)
    return !exact && std::min(weight.size(0), weight.size(1)) >= kWide;
  return halves.rounding() == Rounding::two_parts;
}

void rounded_linear(const at::Tensor& x, RoundedWeight& weight, const at::Tensor& bias,
                    at::Tensor& out) {
  rounded_product(by_rows(x), weight.forward(), weight.parts(), bias.const_data_ptr<float>(), out,
                  x.size(1));
}

void rounded_weight_gradient(const at::Tensor& x, const at::Tensor& gradient, Rounding rounding,
                             at::Tensor& weight_gradient, Workspace& workspace) {
  const int parts = static_cast<int>(rounding);
  const std::int64_t rows = gradient.size(0);
  const std::int64_t outputs = gradient.size(1);
  std::uint16_t* packed = workspace.packed(parts * amx_packed_size(rows, outputs));
  pack_amx(by_rows(gradient), rows, outputs, parts, packed);
  rounded_product(by_columns(x), packed, parts, nullptr, weight_gradient, rows);
}

void rounded_input_gradient(const at::Tensor& gradient, RoundedWeight& weight,
                            at::Tensor& input_gradient) {
  rounded_product(by_rows(gradient), weight.transposed(), weight.parts(), nullptr, input_gradient,
                  gradient.size(1));
}

at::Tensor make_halves(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options) {
  return at::zeros({rounded_up(rows, kAmxRows) + kAmxRows, rounded_up(columns, kAmxColumns)},
                   options.dtype(at::kBFloat16))
      .narrow(0, 0, rows)
      .narrow(1, 0, columns);
}

void each_rows(const at::Tensor& x, const HalfFactor& factor, const at::Tensor& bias,
               Workspace& workspace, UseRows use) {
  const std::int64_t m = x.size(0);
  const std::int64_t n = factor.columns;
  const at::Tensor product =
      factor.packed == nullptr ? half_product(x, factor.matrix, workspace) : at::Tensor();
  float* rows = workspace.floats(kAmxRows * n);
  for (std::int64_t first = 0; first < m; first += kAmxRows) {
    const std::int64_t count = std::min(kAmxRows, m - first);
    if (product.defined())
      kernel_table().widen(rounded_rows(product, first).data, data_or_null(bias), rows, count, n);
    else
      multiply_amx(rounded_rows(x, first), {.packed = factor.packed,
                                            .parts = 1,
                                            .bias = data_or_null(bias),
                                            .adds = false,
                                            .c = rows,
                                            .c_row = n,
                                            .m = count,
                                            .n = n,
                                            .k = x.size(1)});
    use(first, count, rows);
  }
}

void half_linear(const at::Tensor& x, const HalfFactor& factor, const at::Tensor& bias,
                 at::Tensor& out, Workspace& workspace) {
  if (factor.packed == nullptr)
    return half_linear(x, factor.matrix, bias, out, workspace);
  float* c = out.mutable_data_ptr<float>();
  const std::int64_t n = factor.columns;
  split_rows(x.size(0), n, x.size(1), 1, [&](std::int64_t first, std::int64_t last) {
    multiply_amx(rounded_rows(x, first), {.packed = factor.packed,
                                          .parts = 1,
                                          .bias = data_or_null(bias),
                                          .adds = false,
                                          .c = c + first * n,
                                          .c_row = n,
                                          .m = last - first,
                                          .n = n,
                                          .k = x.size(1)});
  });
}

void half_weight_gradient(const at::Tensor& x, const at::Tensor& gradient, bool with_amx,
                          at::Tensor& weight_gradient, Workspace& workspace) {
  if (!with_amx)
    return half_weight_gradient(x, gradient, weight_gradient, workspace);
  constexpr std::int64_t kDepth = 512; // rows whose packed factors stay in the second-level cache
  const std::int64_t rows = x.size(0);
  const std::int64_t m = x.size(1);
  const std::int64_t n = gradient.size(1);
  const std::int64_t blocks = std::max<std::int64_t>(1, (rows + kDepth - 1) / kDepth);
  const std::int64_t depth = rounded_up((rows + blocks - 1) / blocks, kAmxRows);
  float* c = weight_gradient.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < rows; row += depth) {
    const std::int64_t k = std::min(depth, rows - row);
    std::uint16_t* packed = workspace.packed(amx_packed_size(depth, n));
    pack_amx(rounded_rows(gradient, row), k, n, packed);
    split_rows(m, n, k, 1, [&](std::int64_t first, std::int64_t last) {
      static thread_local Workspace lane;
      const RoundedRows from = rounded_rows(x, row);
      multiply_transposed_amx({from.data + first, from.row},
                              {.packed = packed,
                               .parts = 1,
                               .bias = nullptr,
                               .adds = row > 0,
                               .c = c + first * n,
                               .c_row = n,
                               .m = last - first,
                               .n = n,
                               .k = k},
                              lane.packed(amx_transposed_size(last - first, k)));
    });
  }
}

HalfNorm half_norm_at(Activation activation, const at::Tensor& gain, const at::Tensor& shift,
                      const at::Tensor& kept, const at::Tensor& inverse, const at::Tensor& y,
                      const at::Tensor& half_y, std::int64_t first) {
  return {.after = after_norm(activation),
          .gain = gain.const_data_ptr<float>(),
          .shift = shift.const_data_ptr<float>(),
          .kept = halves_at(kept, first),
          .inverse = inverse.mutable_data_ptr<float>() + first,
          .y = y.defined() ? y.mutable_data_ptr<float>() + first * y.size(1) : nullptr,
          .half_y = half_y.defined() ? halves_at(half_y, first) : nullptr,
          .half_row = half_y.defined() ? half_y.stride(0) : 0};
}

} // namespace troupe::learner
