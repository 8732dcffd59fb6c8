#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// N-step returns of sequences, from their first row.
struct SequenceReturns {
  at::Tensor reward;   // [batch] discounted sum of the rewards before the row `last`
  at::Tensor discount; // [batch] discount of the value at that row
  at::Tensor last;     // [batch] int64: a row at most n_step later, within the episode
};

/// `batch` must come from checked_sequences(); `discount` is the discount per step.
SequenceReturns sequence_returns(const TensorMap& batch, int n_step, double discount,
                                 const at::TensorOptions& options);

/// Returns [batch, steps]: 1 if the step is within the episode of the first row, else 0.
at::Tensor steps_within(const TensorMap& batch, std::int64_t steps,
                        const at::TensorOptions& options);

} // namespace troupe::learner
