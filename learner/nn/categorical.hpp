#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

/// The support of a categorical critic: `atoms` evenly spaced values.
struct Support {
  std::int64_t atoms = 51;
  double minimum = 0;
  double maximum = 100;

  at::Tensor values(const at::TensorOptions& options) const; // [atoms]
};

/// Projects softmax(target_logits), shifted to reward + discount * atom, onto the support
/// (Bellemare et al. 2017, algorithm 1): [batch, atoms]. Any type and device.
at::Tensor project(const Support& support, const at::Tensor& target_logits,
                   const at::Tensor& reward, const at::Tensor& discount);

/// Per-row terms of a loss. `weight` [batch] says how much each row counts (undefined: all 1).
/// `losses` [batch] receives the unweighted cross entropies (undefined: not wanted).
struct RowLosses {
  at::Tensor weight;
  at::Tensor losses;
};

/// Returns the mean of weight * cross entropy, [], between the projected target and
/// softmax(logits). `gradient` [batch, atoms] receives its derivative with respect to `logits`.
/// Rewards are multiplied by reward_scale.
at::Tensor categorical_loss(const Support& support, const at::Tensor& target_logits,
                            const at::Tensor& reward, const at::Tensor& discount,
                            double reward_scale, const at::Tensor& logits, at::Tensor& gradient,
                            Workspace& workspace, const RowLosses& rows = {});

/// Returns the mean of Q = sum softmax(logits) * atoms, []. `gradient` receives the derivative of
/// -mean(Q).
at::Tensor expected_value(const Support& support, const at::Tensor& logits, at::Tensor& gradient);

} // namespace troupe::learner
