#include "learner/agents/predictive/model_losses.hpp"

#include <torch/types.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {
namespace {

/// The rows of [steps, batch, features] for a kernel.
struct Rows {
  explicit Rows(const at::Tensor& tensor)
      : first(tensor.mutable_data_ptr<float>()),
        stride(tensor.stride(1)),
        count(tensor.size(0) * tensor.size(1)),
        width(tensor.size(2)) {}
  float* first;
  std::int64_t stride;
  std::int64_t count;
  std::int64_t width;
};

bool has_equal_strides(const at::Tensor& tensor) {
  return tensor.stride(2) == 1 && tensor.stride(0) == tensor.size(1) * tensor.stride(1);
}

bool takes_kernels(const at::Tensor& a, const at::Tensor& b, const at::Tensor& gradient) {
  return uses_kernels(a) && uses_kernels(b) && uses_kernels(gradient) && has_equal_strides(a)
         && has_equal_strides(b) && has_equal_strides(gradient);
}

const float* floats_in(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}

/// Rows of length 1 in bfloat16, [steps, batch, features], and the lengths that they had.
struct UnitRows {
  explicit UnitRows(const at::Tensor& x)
      : halves(at::empty(x.sizes(), x.options().dtype(at::kBFloat16))),
        lengths(at::empty({x.size(0), x.size(1)}, x.options())) {
    const Rows rows(x);
    kernel_table().unit_rows(rows.first, rows.stride, halves_at(halves),
                             lengths.mutable_data_ptr<float>(), rows.count, rows.width);
  }
  at::Tensor halves;
  at::Tensor lengths;
};

at::Tensor contrast_by_kernels(const at::Tensor& predicted, const at::Tensor& target,
                               const at::Tensor& within, const Contrast& how,
                               at::Tensor& gradient) {
  const std::int64_t batch = predicted.size(1);
  const UnitRows from(predicted);
  const UnitRows to(target);
  const at::Tensor logits = at::bmm(from.halves, to.halves.transpose(1, 2));
  const at::Tensor weight = within * (how.weight / (static_cast<double>(batch) * how.temperature));
  const at::Tensor losses = at::empty_like(within);
  const at::Tensor scratch = at::empty({batch}, within.options());
  const Rows rows(predicted);
  kernel_table().contrast(halves_at(logits), static_cast<float>(1 / how.temperature),
                          floats_in(weight), scratch.mutable_data_ptr<float>(),
                          losses.mutable_data_ptr<float>(), rows.count, batch);
  const at::Tensor of_from = at::bmm(logits, to.halves);
  const Rows out(gradient);
  kernel_table().unit_rows_backward(halves_at(of_from), rows.first, rows.stride,
                                    floats_in(from.lengths), out.first, out.stride, rows.count,
                                    rows.width);
  return (losses * within).sum() / static_cast<double>(batch);
}

} // namespace

at::Tensor squared_error(const at::Tensor& predicted, const at::Tensor& target,
                         const at::Tensor& weight, double scale, at::Tensor& gradient) {
  if (takes_kernels(predicted, target, gradient)) {
    const at::Tensor losses = at::empty_like(weight);
    const Rows x(predicted), wanted(target), out(gradient);
    kernel_table().squared_error(x.first, x.stride, wanted.first, wanted.stride, floats_in(weight),
                                 static_cast<float>(scale), out.first, out.stride,
                                 losses.mutable_data_ptr<float>(), x.count, x.width);
    return losses;
  }
  const at::Tensor error = predicted - target;
  gradient.copy_(error * (weight * (2 * scale)).unsqueeze(2));
  return error.square().sum(2);
}

at::Tensor softmax_error(const at::Tensor& logits, const at::Tensor& wanted,
                         const at::Tensor& weight, double scale, at::Tensor& gradient) {
  if (takes_kernels(logits, wanted, gradient)) {
    const at::Tensor losses = at::empty_like(weight);
    const Rows x(logits), out(gradient);
    kernel_table().softmax_error(x.first, x.stride, floats_in(wanted), floats_in(weight),
                                 static_cast<float>(scale), out.first, out.stride,
                                 losses.mutable_data_ptr<float>(), x.count, x.width);
    return losses;
  }
  const at::Tensor logarithms = logits.log_softmax(2);
  gradient.copy_((logarithms.exp() - wanted) * (weight * scale).unsqueeze(2));
  return -(logarithms * wanted).sum(2);
}

at::Tensor contrast_loss(const at::Tensor& predicted, const at::Tensor& target,
                         const at::Tensor& within, const Contrast& how, at::Tensor& gradient) {
  if (how.products == at::kBFloat16 && takes_kernels(predicted, target, gradient))
    return contrast_by_kernels(predicted, target, within, how, gradient);
  const auto batch = static_cast<double>(predicted.size(1));
  const at::Tensor size = predicted.norm(2, {2}, true).clamp_min(1e-8);
  const at::Tensor from = predicted / size;
  const at::Tensor to = target / target.norm(2, {2}, true).clamp_min(1e-8);
  const at::Tensor others = to.to(how.products);
  const at::Tensor logarithms = at::bmm(from.to(how.products), others.transpose(1, 2))
                                    .to(from.scalar_type())
                                    .div_(how.temperature)
                                    .log_softmax(2);
  at::Tensor of_logits = logarithms.exp();
  of_logits.diagonal(0, 1, 2).sub_(1);
  of_logits.mul_(within.unsqueeze(2) * (how.weight / (batch * how.temperature)));
  const at::Tensor of_from = at::bmm(of_logits.to(how.products), others).to(from.scalar_type());
  gradient += (of_from - from * (of_from * from).sum(2, true)) / size;
  return -(logarithms.diagonal(0, 1, 2) * within).sum() / batch;
}

} // namespace troupe::learner
