#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/ops.hpp"

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
  explicit Halves(const at::Tensor& flat);
  /// Call it after the parameters changed. Does nothing if there are no copies.
  void refresh(const at::Tensor& flat);
  bool defined() const { return edition_ != nullptr; }
  /// The flat tensor in bfloat16. Undefined where RoundedWeight is used.
  const at::Tensor& flat() const { return flat_; }
  std::shared_ptr<const std::uint64_t> edition() const { return edition_; }

private:
  at::Tensor flat_;
  std::shared_ptr<std::uint64_t> edition_;
};

/// A weight [inputs, outputs], rounded and packed when it is first used in an edition. One thread.
class RoundedWeight {
public:
  RoundedWeight(at::Tensor weight, std::shared_ptr<const std::uint64_t> edition);
  const std::uint16_t* forward() { return packed(forward_, false); }
  const std::uint16_t* transposed() { return packed(transposed_, true); }

private:
  struct Packed {
    at::Tensor memory;
    std::uint64_t edition = 0; // 0: never packed
  };
  const std::uint16_t* packed(Packed& one, bool transposed);

  at::Tensor weight_;
  std::shared_ptr<const std::uint64_t> edition_;
  Packed forward_, transposed_;
};

/// The three products of a layer, as in ops.hpp. An input gradient may be that of the first inputs
/// alone.
void rounded_linear(const at::Tensor& x, RoundedWeight& weight, const at::Tensor& bias,
                    at::Tensor& out);
void rounded_weight_gradient(const at::Tensor& x, const at::Tensor& gradient,
                             at::Tensor& weight_gradient, Workspace& workspace);
void rounded_input_gradient(const at::Tensor& gradient, RoundedWeight& weight,
                            at::Tensor& input_gradient);

} // namespace troupe::learner
