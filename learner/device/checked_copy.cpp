#include "learner/device/checked_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {
namespace {

/// A number that is not finite has an exponent of all ones. The loop combines the bits without
/// branches.
template <class T, class Bits, Bits exponent>
bool copy_elements(const T* from, T* to, std::int64_t count) {
  constexpr std::int64_t kBlock = 4096;
  bool finite = true;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const auto end = std::min(begin + kBlock, count);
    Bits worst = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto bits = std::bit_cast<Bits>(from[i]);
      worst |= static_cast<Bits>((bits & exponent) == exponent);
      to[i] = from[i];
    }
    finite = finite && worst == 0;
  }
  return finite;
}

bool copy_plain(const at::Tensor& from, at::Tensor& to) {
  if (from.scalar_type() == at::kFloat)
    return copy_elements<float, std::uint32_t, 0x7f800000U>(
        from.const_data_ptr<float>(), to.mutable_data_ptr<float>(), from.numel());
  return copy_elements<double, std::uint64_t, 0x7ff0000000000000ULL>(
      from.const_data_ptr<double>(), to.mutable_data_ptr<double>(), from.numel());
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense()
         && (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}

} // namespace

bool checked_copy(const at::Tensor& from, at::Tensor& to) {
  if (is_plain(from) && is_plain(to) && from.scalar_type() == to.scalar_type()
      && from.sizes() == to.sizes() && from.strides() == to.strides())
    return copy_plain(from, to);
  to.copy_(from.is_sparse() ? from.to_dense() : from);
  return all_finite(to, FiniteCheck::on_cpu);
}

} // namespace troupe::learner
