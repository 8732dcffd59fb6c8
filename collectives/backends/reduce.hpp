#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/core/ScalarType.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// Returns whether reduce_ranks() supports this pair. It supports neither `first` (a broadcast) nor
/// the mean of integers, nor arithmetic on bool and complex numbers.
bool can_reduce(c10::ScalarType type, ReduceOp op);

/// Computes outputs[k][i] = op over inputs[0][i], inputs[1][i], …, in this order, for `count`
/// elements and every k. An output may be one of the inputs, at the same address. bfloat16 and
/// float16 are summed in float32 and rounded once. Min and max propagate NaN. Requires
/// can_reduce(type, op). Does not allocate or throw.
void reduce_ranks(c10::ScalarType type, ReduceOp op, std::span<const std::byte* const> inputs,
                  std::span<std::byte* const> outputs, std::size_t count) noexcept;

} // namespace troupe::collectives
