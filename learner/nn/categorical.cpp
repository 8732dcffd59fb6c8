#include "learner/nn/categorical.hpp"

#include <torch/types.h>

#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {

at::Tensor Support::values(const at::TensorOptions& options) const {
  return at::linspace(minimum, maximum, atoms, options);
}

at::Tensor project(const Support& support, const at::Tensor& target_logits,
                   const at::Tensor& reward, const at::Tensor& discount) {
  const double spacing =
      (support.maximum - support.minimum) / static_cast<double>(support.atoms - 1);
  const at::Tensor mass = at::softmax(target_logits, 1);
  const at::Tensor atoms = support.values(target_logits.options()).unsqueeze(0);
  const at::Tensor position =
      (reward.unsqueeze(1) + discount.unsqueeze(1) * atoms - support.minimum)
          .div(spacing)
          .clamp(0, static_cast<double>(support.atoms - 1));
  const at::Tensor below = position.floor();
  const at::Tensor above = position - below;
  const at::Tensor index = below.to(at::kLong);
  at::Tensor projected = at::zeros_like(mass);
  projected.scatter_add_(1, index, mass * (1 - above));
  projected.scatter_add_(1, (index + 1).clamp_max(support.atoms - 1), mass * above);
  return projected;
}

at::Tensor categorical_loss(const Support& support, const at::Tensor& target_logits,
                            const at::Tensor& reward, const at::Tensor& discount,
                            double reward_scale, const at::Tensor& logits, at::Tensor& gradient,
                            Workspace& workspace, const RowLosses& rows) {
  const std::int64_t batch = logits.size(0);
  if (uses_kernels(logits)) {
    const double total = kernel_table().categorical_loss(
        target_logits.const_data_ptr<float>(), reward.const_data_ptr<float>(),
        discount.const_data_ptr<float>(),
        rows.weight.defined() ? rows.weight.const_data_ptr<float>() : nullptr,
        logits.const_data_ptr<float>(), gradient.mutable_data_ptr<float>(),
        rows.losses.defined() ? rows.losses.mutable_data_ptr<float>() : nullptr,
        workspace.floats(2 * (support.atoms + 32)), static_cast<float>(support.minimum),
        static_cast<float>(support.maximum), static_cast<float>(reward_scale), batch,
        support.atoms);
    return at::scalar_tensor(total / static_cast<double>(batch), at::kDouble);
  }
  const at::Tensor projected = project(support, target_logits, reward * reward_scale, discount);
  const at::Tensor log_probability = at::log_softmax(logits, 1);
  gradient.copy_((log_probability.exp() - projected) / static_cast<double>(batch));
  at::Tensor losses = -(projected * log_probability).sum(1);
  if (rows.losses.defined())
    rows.losses.copy_(losses);
  if (rows.weight.defined()) {
    gradient.mul_(rows.weight.unsqueeze(1));
    losses = losses * rows.weight;
  }
  return losses.mean();
}

at::Tensor expected_value(const Support& support, const at::Tensor& logits, at::Tensor& gradient) {
  const auto batch = static_cast<double>(logits.size(0));
  if (uses_kernels(logits)) {
    const double total = kernel_table().expected_value(
        logits.const_data_ptr<float>(), gradient.mutable_data_ptr<float>(),
        static_cast<float>(support.minimum), static_cast<float>(support.maximum), logits.size(0),
        support.atoms);
    return at::scalar_tensor(total / batch, at::kDouble);
  }
  const at::Tensor values = support.values(logits.options()).unsqueeze(0);
  const at::Tensor probability = at::softmax(logits, 1);
  const at::Tensor q = (probability * values).sum(1, true);
  gradient.copy_(probability * (values - q) / -batch);
  return q.mean();
}

} // namespace troupe::learner
