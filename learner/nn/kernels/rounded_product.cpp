#include "learner/nn/kernels/rounded_product.hpp"

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
void rounded_product(const Strided& a, const std::uint16_t* packed, const float* bias,
                     at::Tensor& c, std::int64_t k) {
  constexpr std::int64_t kRowsPerThread = 32;  // a multiple of the rows that stay in tiles
  constexpr std::int64_t kFewest = 16'000'000; // multiplications
  const std::int64_t m = c.size(0);
  const std::int64_t n = c.size(1);
  float* out = c.mutable_data_ptr<float>();
  const auto rows = [&](std::int64_t first, std::int64_t last) {
    static thread_local Workspace lane;
    multiply_amx({a.data + first * a.row, a.row, a.column},
                 {.packed = packed,
                  .bias = bias,
                  .adds = false,
                  .c = out + first * n,
                  .c_row = n,
                  .m = last - first,
                  .n = n,
                  .k = k},
                 lane.packed(amx_scratch_size(k)));
  };
  if (at::get_num_threads() == 1 || m * n * k < kFewest)
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

Halves::Halves(const at::Tensor& flat) : edition_(std::make_shared<std::uint64_t>(0)) {
  if (!uses_kernels(flat) || !multiplies_rounded())
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

RoundedWeight::RoundedWeight(at::Tensor weight, std::shared_ptr<const std::uint64_t> edition)
    : weight_(std::move(weight)), edition_(std::move(edition)) {}

const std::uint16_t* RoundedWeight::packed(Packed& one, bool transposed) {
  const std::int64_t k = weight_.size(transposed ? 1 : 0);
  const std::int64_t n = weight_.size(transposed ? 0 : 1);
  if (!one.memory.defined())
    one.memory = at::empty({amx_packed_size(k, n)}, at::kBFloat16);
  if (one.edition != *edition_)
    pack_amx(transposed ? by_columns(weight_) : by_rows(weight_), k, n, bits(one.memory));
  one.edition = *edition_;
  return bits(one.memory);
}

void rounded_linear(const at::Tensor& x, RoundedWeight& weight, const at::Tensor& bias,
                    at::Tensor& out) {
  rounded_product(by_rows(x), weight.forward(), bias.const_data_ptr<float>(), out, x.size(1));
}

void rounded_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                             at::Tensor& weight_gradient, Workspace& workspace) {
  const std::int64_t rows = gradient.size(0);
  const std::int64_t outputs = gradient.size(1);
  std::uint16_t* packed = workspace.packed(amx_packed_size(rows, outputs));
  pack_amx(by_rows(gradient), rows, outputs, packed);
  rounded_product(by_columns(x), packed, nullptr, weight_gradient, rows);
}

void rounded_input_gradient(const at::Tensor& gradient, RoundedWeight& weight,
                            at::Tensor& input_gradient) {
  rounded_product(by_rows(gradient), weight.transposed(), nullptr, input_gradient,
                  gradient.size(1));
}

} // namespace troupe::learner
