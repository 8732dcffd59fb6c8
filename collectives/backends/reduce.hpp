#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/core/ScalarType.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {

/// Whether reduce_ranks() takes this pair: not `first`, which is a broadcast; no mean of integers,
/// no arithmetic on bool or complex numbers.
bool can_reduce(c10::ScalarType type, ReduceOp op);

/// outputs[k][i] = op over inputs[0][i], inputs[1][i], … in this order, for `count` elements and
/// every k. An output may be one of the inputs, at the same address. Sums of bfloat16 and float16
/// are kept in float32 and rounded once. Min and max hand a NaN on. Does not allocate or throw;
/// can_reduce(type, op) holds.
void reduce_ranks(c10::ScalarType type, ReduceOp op, std::span<const std::byte* const> inputs,
                  std::span<std::byte* const> outputs, std::size_t count) noexcept;

} // namespace troupe::collectives
