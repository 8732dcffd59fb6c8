#include "collectives/backends/reduce.hpp"

#include <algorithm>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace troupe::collectives {
namespace {

constexpr std::size_t kBlock = 1024; // elements; the accumulators stay in the L1 cache

template <class T>
using Accumulator = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, T>;

template <ReduceOp op, class A>
A combine(A a, A b) {
  if constexpr (op == ReduceOp::min)
    return b < a || b != b ? b : a;
  else if constexpr (op == ReduceOp::max)
    return b > a || b != b ? b : a;
  else if constexpr (std::is_integral_v<A>) { // overflow wraps, as in LibTorch
    using U = std::make_unsigned_t<A>;
    if constexpr (op == ReduceOp::product)
      return static_cast<A>(static_cast<std::uint64_t>(static_cast<U>(a)) * static_cast<U>(b));
    else
      return static_cast<A>(static_cast<std::uint64_t>(static_cast<U>(a)) + static_cast<U>(b));
  } else if constexpr (op == ReduceOp::product)
    return a * b;
  else
    return a + b;
}

template <class T, ReduceOp op>
void reduce_blocks(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                   std::size_t count) {
  using A = Accumulator<T>;
  alignas(64) A sum[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const T* first = reinterpret_cast<const T*>(inputs[0]) + begin;
    if (inputs.size() == 1) {
      for (std::size_t i = 0; i < n; ++i)
        sum[i] = static_cast<A>(first[i]);
    } else { // saves one pass over the accumulators
      const T* second = reinterpret_cast<const T*>(inputs[1]) + begin;
      for (std::size_t i = 0; i < n; ++i)
        sum[i] = combine<op>(static_cast<A>(first[i]), static_cast<A>(second[i]));
    }
    for (std::size_t k = 2; k < inputs.size(); ++k) {
      const T* next = reinterpret_cast<const T*>(inputs[k]) + begin;
      for (std::size_t i = 0; i < n; ++i)
        sum[i] = combine<op>(sum[i], static_cast<A>(next[i]));
    }
    if constexpr (op == ReduceOp::mean) {
      const A ranks = static_cast<A>(inputs.size());
      for (std::size_t i = 0; i < n; ++i)
        sum[i] /= ranks;
    }
    for (std::byte* output : outputs) {
      T* out = reinterpret_cast<T*>(output) + begin;
      for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<T>(sum[i]);
    }
  }
}

template <class T>
void reduce_type(ReduceOp op, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, std::size_t count) {
  switch (op) {
  case ReduceOp::sum:
    return reduce_blocks<T, ReduceOp::sum>(inputs, outputs, count);
  case ReduceOp::mean:
    if constexpr (!std::is_integral_v<T>)
      return reduce_blocks<T, ReduceOp::mean>(inputs, outputs, count);
    return;
  case ReduceOp::min:
    return reduce_blocks<T, ReduceOp::min>(inputs, outputs, count);
  case ReduceOp::max:
    return reduce_blocks<T, ReduceOp::max>(inputs, outputs, count);
  case ReduceOp::product:
    return reduce_blocks<T, ReduceOp::product>(inputs, outputs, count);
  case ReduceOp::first: // a broadcast: no arithmetic
    return;
  }
}

void reduce_any(c10::ScalarType type, ReduceOp op, std::span<const std::byte* const> inputs,
                std::span<std::byte* const> outputs, std::size_t count) noexcept {
  switch (type) {
  case c10::ScalarType::Float:
    return reduce_type<float>(op, inputs, outputs, count);
  case c10::ScalarType::Double:
    return reduce_type<double>(op, inputs, outputs, count);
  case c10::ScalarType::Half:
    return reduce_type<c10::Half>(op, inputs, outputs, count);
  case c10::ScalarType::BFloat16:
    return reduce_type<c10::BFloat16>(op, inputs, outputs, count);
  case c10::ScalarType::Long:
    return reduce_type<std::int64_t>(op, inputs, outputs, count);
  case c10::ScalarType::Int:
    return reduce_type<std::int32_t>(op, inputs, outputs, count);
  case c10::ScalarType::Char:
    return reduce_type<std::int8_t>(op, inputs, outputs, count);
  case c10::ScalarType::Byte:
    return reduce_type<std::uint8_t>(op, inputs, outputs, count);
  default:
    return;
  }
}

#if defined(__x86_64__)
/// The same function compiled for registers twice as wide. Sums do not change, because each element
/// is summed separately.
[[gnu::target("avx2"), gnu::flatten]] void reduce_wide(c10::ScalarType type, ReduceOp op,
                                                       std::span<const std::byte* const> inputs,
                                                       std::span<std::byte* const> outputs,
                                                       std::size_t count) noexcept {
  reduce_any(type, op, inputs, outputs, count);
}
#endif

} // namespace

bool can_reduce(c10::ScalarType type, ReduceOp op) {
  if (op == ReduceOp::first)
    return false;
  switch (type) {
  case c10::ScalarType::Float:
  case c10::ScalarType::Double:
  case c10::ScalarType::Half:
  case c10::ScalarType::BFloat16:
    return true;
  case c10::ScalarType::Long:
  case c10::ScalarType::Int:
  case c10::ScalarType::Char:
  case c10::ScalarType::Byte:
    return op != ReduceOp::mean;
  default:
    return false;
  }
}

void reduce_ranks(c10::ScalarType type, ReduceOp op, std::span<const std::byte* const> inputs,
                  std::span<std::byte* const> outputs, std::size_t count) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    return reduce_wide(type, op, inputs, outputs, count);
#endif
  reduce_any(type, op, inputs, outputs, count);
}

} // namespace troupe::collectives
