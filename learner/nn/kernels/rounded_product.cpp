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

std::uint16_t* bits(at::Tensor& halves) {
  return static_cast<std::uint16_t*>(halves.mutable_data_ptr());
}

/// c[m, n] = a * b with b packed. Splits the rows over threads if that pays.
void rounded_product(const Strided& a, const std::uint16_t* packed, int parts, const float* bias,
                     at::Tensor& c, std::int64_t k) {
  constexpr std::int64_t kRowsPerThread = 32;  // a multiple of the rows that stay in tiles
  constexpr std::int64_t kFewest = 12'000'000; // multiplications
  const std::int64_t m = c.size(0);
  const std::int64_t n = c.size(1);
  float* out = c.mutable_data_ptr<float>();
  const auto rows = [&](std::int64_t first, std::int64_t last) {
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
  };
  const std::int64_t products = parts == 1 ? 1 : 3; // of the parts
  if (at::get_num_threads() == 1 || m * n * k * products < kFewest)
    rows(0, m);
  else
    over_threads(m, kRowsPerThread, rows);
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
    pack_amx(transposed ? by_columns(weight_) : by_rows(weight_), k, n, parts(), bits(one.memory));
  one.edition = *edition_;
  return bits(one.memory);
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

} // namespace troupe::learner
