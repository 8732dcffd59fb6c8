#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// What sequences say of returns from their first row.
struct SequenceReturns {
  at::Tensor reward;   // [batch] discounted sum of the steps before the last row
  at::Tensor discount; // [batch] of that row's value
  at::Tensor last;     // [batch] int64, that row: at most n_step on, within the episode
};

/// batch: as checked_sequences() gives it; `discount`: of a step.
SequenceReturns sequence_returns(const TensorMap& batch, int n_step, double discount,
                                 const at::TensorOptions& options);

/// [batch, steps] 1 where the step led on within the first row's episode, else 0.
at::Tensor steps_within(const TensorMap& batch, std::int64_t steps,
                        const at::TensorOptions& options);

} // namespace troupe::learner
