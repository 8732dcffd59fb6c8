#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {

/// Values on which a categorical critic puts its mass: `atoms` of them, evenly spaced.
struct Support {
  std::int64_t atoms = 51;
  double minimum = 0;
  double maximum = 100;

  at::Tensor values(const at::TensorOptions& options) const; // [atoms]
};

/// Projects softmax(target_logits) shifted to reward + discount * atom onto the support
/// (Bellemare et al. 2017, algorithm 1): [batch, atoms]. Any type and device.
at::Tensor project(const Support& support, const at::Tensor& target_logits,
                   const at::Tensor& reward, const at::Tensor& discount);

/// What of a loss is each row's own: `weight` [batch] (undefined: all 1) is how much a row counts,
/// `losses` [batch] (undefined: not wanted) gets their cross entropies, unweighted.
struct RowLosses {
  at::Tensor weight;
  at::Tensor losses;
};

/// Mean of weight * cross entropy, [], between the projected target and softmax(logits); `gradient`
/// [batch, atoms] gets its derivative with respect to `logits`. Rewards are multiplied by
/// reward_scale.
at::Tensor categorical_loss(const Support& support, const at::Tensor& target_logits,
                            const at::Tensor& reward, const at::Tensor& discount,
                            double reward_scale, const at::Tensor& logits, at::Tensor& gradient,
                            Workspace& workspace, const RowLosses& rows = {});

/// Mean of Q = sum softmax(logits) * atoms, []; `gradient` gets the derivative of -mean(Q).
at::Tensor expected_value(const Support& support, const at::Tensor& logits, at::Tensor& gradient);

} // namespace troupe::learner
