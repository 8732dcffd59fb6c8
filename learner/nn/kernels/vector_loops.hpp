#pragma once
// Loops over the elements of a row by vectors, the last of which may be a part. Only the files that
// are compiled once per instruction set include it, for the reason in vector_math.hpp.

#include "learner/nn/kernels/vector_math.hpp"

namespace troupe::learner::TROUPE_KERNELS {

/// Calls apply(first, count) for each vector.
template <class F>
static inline void each(Index count, F&& apply) {
  Index i = 0;
  for (; i + kWidth <= count; i += kWidth)
    apply(i, kWidth);
  if (i < count)
    apply(i, count - i);
}

static inline Vector get(const float* p, Index count, float fill = 0) {
  return count == kWidth ? load(p) : load_part(p, count, fill);
}

static inline Vector get(const std::uint16_t* p, Index count) {
  return widened(count == kWidth ? load(p) : load_part(p, count));
}

static inline void put(float* p, Vector v, Index count) {
  if (count == kWidth)
    store(p, v);
  else
    store_part(p, v, count);
}

static inline void put(std::uint16_t* p, Vector v, Index count) {
  if (count == kWidth)
    store(p, narrowed(v));
  else
    store_part(p, narrowed(v), count);
}

} // namespace troupe::learner::TROUPE_KERNELS
