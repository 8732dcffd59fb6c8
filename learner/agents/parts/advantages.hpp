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

struct VTraceOptions {
  double discount = 0.99;
  double reward_scale = 1;
  double lambda = 1;
  double most_weight = 1;
  double most_trace = 1;
};

// clang-format off
/// V-trace (Espeholt et al. 2018) with the ratios [batch, steps] of the new policy's probabilities to the old
/// one's, and weights rho_t = min(most_weight, ratio_t), c_t = lambda * min(most_trace, ratio_t):
///   value_t     = V_t + rho_t * delta_t + discount * d_t * c_t * (value_{t+1} - V_{t+1})
///   advantage_t = rho_t * (r_t + discount * d_t * value_{t+1} - V_t),   delta_t as above
/// Where the episode or the sequence ends, value_{t+1} is V_{t+1}. r_t is the reward times reward_scale.
/// `values` and `ratios`: float64 on the CPU.
// clang-format on
Advantages v_trace(const TensorMap& batch, const at::Tensor& values, const at::Tensor& ratios,
                   const VTraceOptions& options);

/// [batch, steps] float32: 1; 0 where the next row is the first of its episode, so that no step led
/// to it.
at::Tensor counting_steps(const TensorMap& batch);

/// With mean 0 and deviation 1 over the steps that count.
at::Tensor normalised(const at::Tensor& advantage, const at::Tensor& counts);

/// The mean of updates - version over the steps that count: how old the parameters were that chose
/// the actions.
double sample_age(const TensorMap& batch, std::int64_t updates);

} // namespace troupe::learner
