#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

struct Advantages {
  at::Tensor advantage; // [batch, steps] float64 on the CPU, 0 of steps that do not count
  at::Tensor value;     // the same: what the value should be
};

// clang-format off
/// Generalised advantages (Schulman et al. 2016) of a batch of sequences, backwards from the end of each:
///   A_t = delta_t + discount * lambda * d_t * A_{t+1},   delta_t = r_t + discount * d_t * V_{t+1} - V_t
/// with the environment's discounts d_t; the sum ends with the episode. `values` [batch, steps + 1]: float64 on the CPU.
// clang-format on
Advantages generalized_advantages(const TensorMap& batch, const at::Tensor& values, double discount,
                                  double lambda);

/// [batch, steps] float32: 1; 0 where the next row is the first of its episode, so that no step led
/// to it.
at::Tensor counting_steps(const TensorMap& batch);

/// The mean of updates - version over the steps that count: how old the parameters were that chose
/// the actions.
double parameter_lag(const TensorMap& batch, std::int64_t updates);

} // namespace troupe::learner
