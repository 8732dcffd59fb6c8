#include "learner/workloads/captured_update.hpp"

#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include "learner/gradients/wrapped_optimizer.hpp"
#include "learner/nn/kernels/device_optimizer.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kWarmUp = 3; // updates before the captured one, in which libraries and the
                                    // optimizer set up their state

} // namespace

CapturedUpdate::Sent::Sent(std::size_t count, at::ScalarType type, const at::Device& where)
    : host(at::empty({static_cast<std::int64_t>(count)},
                     at::TensorOptions(type).pinned_memory(where.is_cuda()))),
      device(at::empty({static_cast<std::int64_t>(count)}, at::TensorOptions(type).device(where))) {
}

void CapturedUpdate::Sent::send(const at::Tensor& values) {
  host.copy_(values); // the read at the end of the last update shows that it was consumed
  device.copy_(host, /*non_blocking=*/true);
}

bool CapturedUpdate::supports(WrappedOptimizer& optimizer) {
  return optimizer.steps_alone() && dynamic_cast<DeviceOptimizer*>(&optimizer.optimizer());
}

CapturedUpdate::CapturedUpdate(WrappedOptimizer& optimizer, const at::Device& device,
                               Forward forward)
    : optimizer_(&optimizer),
      rule_(&dynamic_cast<DeviceOptimizer&>(optimizer.optimizer())),
      device_(device),
      forward_(std::move(forward)),
      rates_(optimizer.optimizer().param_groups().size(),
             device.is_cuda() ? at::kFloat : at::kDouble, device),
      numbers_(rule_->next_numbers().size(), at::kFloat, device),
      report_(at::zeros({3}, at::TensorOptions(at::kDouble).device(device))) {}

CapturedUpdate::~CapturedUpdate() = default;

bool CapturedUpdate::takes(const at::Tensor& rows, const at::Tensor& labels) const {
  return !rows_.defined()
         || (rows.sizes() == rows_.sizes() && rows.scalar_type() == rows_.scalar_type()
             && labels.sizes() == labels_.sizes());
}

void CapturedUpdate::bring(const at::Tensor& rows, const at::Tensor& labels) {
  if (!rows_.defined()) {
    rows_ = at::empty_like(rows, at::TensorOptions(rows.scalar_type()).device(device_));
    labels_ = at::empty_like(labels, at::TensorOptions(labels.scalar_type()).device(device_));
  }
  const at::NoGradGuard no_gradient;
  rows_.copy_(rows, /*non_blocking=*/rows.is_pinned());
  labels_.copy_(labels, /*non_blocking=*/labels.is_pinned());
  rates_.send(at::tensor(optimizer_->next_learning_rates(), at::kDouble));
  if (const auto numbers = rule_->next_numbers(); !numbers.empty())
    numbers_.send(at::tensor(numbers, at::kFloat));
}

/// Everything that is captured. No autograd tensor outlives it: a gradient accumulator kept from an
/// update before the capture would tie the graph to that update's stream.
void CapturedUpdate::update() {
  optimizer_->zero_grad(); // backward then allocates new gradients in the graph's memory
  const auto outcome = forward_(rows_, labels_);
  outcome.loss.backward();
  const at::NoGradGuard no_gradient;
  const auto norm = optimizer_->clip_on_device();
  const auto loss = outcome.loss.detach().to(at::kDouble);
  report_.copy_(at::stack({loss, outcome.accuracy.detach().to(at::kDouble), norm}));
  const auto sound = at::isfinite(loss).logical_and(at::isfinite(norm));
  rule_->step_on_device({.rates = rates_.device,
                         .numbers = numbers_.device,
                         .left_out = sound.logical_not().to(at::kFloat)});
}

void CapturedUpdate::replay() {
  const auto& parameters = optimizer_->parameters();
  if (!graph_) {
    graph_ = std::make_unique<StepGraph>(device_, [this] { update(); });
    for (const auto& parameter : parameters)
      gradients_.push_back(parameter.grad());
  }
  graph_->replay();
  for (std::size_t i = 0; i < parameters.size(); ++i) // another update may have replaced them
    parameters[i].mutable_grad() = gradients_[i];
}

CapturedUpdate::Report CapturedUpdate::make(const at::Tensor& rows, const at::Tensor& labels) {
  bring(rows, labels);
  if (graph_ || (updates_ >= kWarmUp && StepGraph::unavailable_reason(device_).empty()))
    replay();
  else
    update();
  ++updates_;
  const auto numbers = report_.cpu(); // the only read
  const auto* said = numbers.const_data_ptr<double>();
  const Report report{.loss = said[0], .accuracy = said[1]};
  const double norm = said[2];
  const bool left_out_for_loss = std::isfinite(norm) && !std::isfinite(report.loss);
  if (!left_out_for_loss && optimizer_->finish_step(norm))
    rule_->count_step();
  return report;
}

} // namespace troupe::learner
