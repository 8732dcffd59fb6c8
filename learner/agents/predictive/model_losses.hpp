#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::learner {

// Losses of a model's predictions for several steps of each sequence, with hand-written gradients.
// Predictions, targets and gradients are [steps, batch, features], and may be views of wider
// tensors; `weight` [steps, batch] is dense. They use the kernels for float32 on the CPU, and
// LibTorch's operators otherwise.

/// gradient = the derivative of sum(weight * scale * losses). Returns the losses [steps, batch],
/// the sums of squared differences of each row.
at::Tensor squared_error(const at::Tensor& predicted, const at::Tensor& target,
                         const at::Tensor& weight, double scale, at::Tensor& gradient);
/// The same for the cross entropy of softmax(logits) with the distributions `wanted`, which are
/// dense.
at::Tensor softmax_error(const at::Tensor& logits, const at::Tensor& wanted,
                         const at::Tensor& weight, double scale, at::Tensor& gradient);

struct Contrast {
  double temperature = 1;
  double weight = 1;
  at::ScalarType products = at::kFloat;
};

/// InfoNCE: each prediction should be closer to its target than to the targets of the other rows in
/// the batch. `within` is the weight of a row. Adds how.weight * the derivative to `gradient`.
/// Returns the loss, [], summed over steps and averaged over the batch.
at::Tensor contrast_loss(const at::Tensor& predicted, const at::Tensor& target,
                         const at::Tensor& within, const Contrast& how, at::Tensor& gradient);

} // namespace troupe::learner
