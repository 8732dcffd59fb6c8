#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

struct Advantages {
  at::Tensor advantage; // [batch, steps] float64 on the CPU; 0 for steps that do not count
  at::Tensor value;     // the regression target of the value, of the same shape and type
};

// clang-format off
/// Generalised advantages (Schulman et al. 2016) of a batch of sequences, computed backwards from
/// their ends:
///   A_t     = delta_t + discount * lambda * d_t * A_{t+1}
///   delta_t = r_t + discount * d_t * V_{t+1} - V_t
/// with the environment's discounts d_t. The sum ends with the episode. `values` is float64
/// [batch, steps + 1] on the CPU.
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
/// V-trace (Espeholt et al. 2018). `ratios` [batch, steps] are the new policy's probabilities
/// divided by the old one's; the weights are rho_t = min(most_weight, ratio_t) and c_t = lambda *
/// min(most_trace, ratio_t):
///   value_t     = V_t + rho_t * delta_t + discount * d_t * c_t * (value_{t+1} - V_{t+1})
///   advantage_t = rho_t * (r_t + discount * d_t * value_{t+1} - V_t),   delta_t as above
/// At the end of the episode or the sequence, value_{t+1} is V_{t+1}. r_t is the reward times
/// reward_scale. `values` and `ratios` are float64 on the CPU.
// clang-format on
Advantages v_trace(const TensorMap& batch, const at::Tensor& values, const at::Tensor& ratios,
                   const VTraceOptions& options);

/// [batch, steps] float32: 0 if the next row is the first of an episode, so that no step leads to
/// it; otherwise 1.
at::Tensor counting_steps(const TensorMap& batch);

/// Shifts and scales the advantages to mean 0 and standard deviation 1 over the steps that count.
at::Tensor normalised(const at::Tensor& advantage, const at::Tensor& counts);

/// The mean age of the parameters that chose the actions: updates - version, averaged over the
/// steps that count.
double sample_age(const TensorMap& batch, std::int64_t updates);

} // namespace troupe::learner
