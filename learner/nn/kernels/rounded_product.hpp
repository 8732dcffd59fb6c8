#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/rounding.hpp"

namespace troupe::learner {

// Products of float32 tensors on the CPU whose factors are rounded to bfloat16, with AMX. Sums are
// float32, and do not depend on the number of threads.

/// Whether this thread may use these products: the processor has AMX, unless use_amx(false) was
/// called or ONEDNN_MAX_CPU_ISA is set.
bool multiplies_rounded();
/// Returns the previous value.
bool use_amx(bool on);

/// Copies of a flat tensor's parameters in bfloat16. Where multiplies_rounded(), this is only a
/// number that tells each RoundedWeight when to pack its weight again.
class Halves {
public:
  Halves() = default; // none
  /// None for Rounding::none, and for two parts where !multiplies_rounded().
  Halves(const at::Tensor& flat, Rounding rounding);
  /// Call it after the parameters changed. Does nothing if there are no copies.
  void refresh(const at::Tensor& flat);
  bool defined() const { return edition_ != nullptr; }
  /// The flat tensor in bfloat16. Undefined where RoundedWeight is used.
  const at::Tensor& flat() const { return flat_; }
  std::shared_ptr<const std::uint64_t> edition() const { return edition_; }
  Rounding rounding() const { return rounding_; }

private:
  Rounding rounding_ = Rounding::none;
  at::Tensor flat_;
  std::shared_ptr<std::uint64_t> edition_;
};

/// A weight [inputs, outputs], rounded and packed when it is first used in an edition. One thread.
class RoundedWeight {
public:
  RoundedWeight(at::Tensor weight, const Halves& halves);
  /// Rounding::none where the layer's products are faster in float32.
  Rounding rounding(std::int64_t rows) const;
  int parts() const { return static_cast<int>(rounding_); }
  const std::uint16_t* forward() { return packed(forward_, false); }
  const std::uint16_t* transposed() { return packed(transposed_, true); }

private:
  struct Packed {
    at::Tensor memory;
    std::uint64_t edition = 0; // 0: never packed
  };
  const std::uint16_t* packed(Packed& one, bool transposed);

  at::Tensor weight_;
  Rounding rounding_;
  std::shared_ptr<const std::uint64_t> edition_;
  Packed forward_, transposed_;
};

/// Whether the products of a weight may round: in two parts always, in one part unless it has few
/// inputs or outputs or must be `exact`.
bool may_round(const at::Tensor& weight, const Halves& halves, bool exact = false);

/// The three products of a layer, as in ops.hpp, whose factors are rounded while they are packed.
/// An input gradient may be that of the first inputs alone.
void rounded_linear(const at::Tensor& x, RoundedWeight& weight, const at::Tensor& bias,
                    at::Tensor& out);
void rounded_weight_gradient(const at::Tensor& x, const at::Tensor& gradient, Rounding rounding,
                             at::Tensor& weight_gradient, Workspace& workspace);
void rounded_input_gradient(const at::Tensor& gradient, RoundedWeight& weight,
                            at::Tensor& input_gradient);

/// Returns [rows, columns] of bfloat16, a view with room around it for tiles of AMX, which is 0.
at::Tensor make_halves(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options);

/// The right factor [k, columns] of a product in bfloat16: for LibTorch, or else packed for AMX.
struct HalfFactor {
  at::Tensor matrix;
  const std::uint16_t* packed = nullptr;
  std::int64_t columns;
};

/// out = x * factor + bias, where x is from make_halves() and `bias` may be undefined.
void half_linear(const at::Tensor& x, const HalfFactor& factor, const at::Tensor& bias,
                 at::Tensor& out, Workspace& workspace);
/// The same by blocks of rows: calls use(first, count, rows) while they are in the cache. `rows`
/// may be changed. On the CPU only, and on this thread.
using UseRows = c10::function_ref<void(std::int64_t first, std::int64_t count, float* rows)>;
void each_rows(const at::Tensor& x, const HalfFactor& factor, const at::Tensor& bias,
               Workspace& workspace, UseRows use);
/// weight_gradient = x^T * gradient, both from make_halves().
void half_weight_gradient(const at::Tensor& x, const at::Tensor& gradient, bool with_amx,
                          at::Tensor& weight_gradient, Workspace& workspace);

/// The rows from `first` of a norm that keeps its results in bfloat16. y or half_y may be
/// undefined.
HalfNorm half_norm_at(Activation activation, const at::Tensor& gain, const at::Tensor& shift,
                      const at::Tensor& kept, const at::Tensor& inverse, const at::Tensor& y,
                      const at::Tensor& half_y, std::int64_t first);

} // namespace troupe::learner
