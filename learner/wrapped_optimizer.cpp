#include "learner/wrapped_optimizer.hpp"

#include <cmath>
#include <string>

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"
#include "learner/update_rule.hpp"

namespace troupe::learner {

/// Gradients of consecutive parameters of one type and device, one flat tensor: the gradients, then
/// one flag per parameter that says on which share of the replicas it had a gradient.
struct WrappedOptimizer::Bucket {
  std::size_t first = 0; // parameter
  std::size_t count = 0;
  at::Tensor flat;               // [elements + count]
  std::vector<at::Tensor> views; // [parameter] of its shape, into flat
  at::Tensor flags;              // [count], into flat
};

namespace {

bool same_bucket(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

bool is_view(const at::Tensor& gradient, const at::Tensor& view) {
  return gradient.defined() && gradient.data_ptr() == view.data_ptr()
         && gradient.strides() == view.strides();
}

void check_norm_limit(double norm) {
  if (!(norm >= 0) || std::isinf(norm))
    throw std::invalid_argument("max_gradient_norm " + std::to_string(norm)
                                + " must be a finite number, at least 0; 0 switches clipping off");
}

} // namespace

WrappedOptimizer::WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                                   collectives::Communicator* communicator,
                                   const WrappedOptimizerOptions& options)
    : WrappedOptimizer(std::move(optimizer), communicator, options, nullptr) {}

WrappedOptimizer::WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                                   collectives::Communicator* communicator,
                                   const WrappedOptimizerOptions& options,
                                   std::unique_ptr<UpdateRule> rule)
    : optimizer_(std::move(optimizer)),
      rule_(std::move(rule)),
      communicator_(!rule_ && communicator && communicator->size() > 1 ? communicator : nullptr),
      options_(options) {
  check_norm_limit(options_.max_gradient_norm);
  if (options_.bucket_bytes < 1)
    throw std::invalid_argument("bucket_bytes " + std::to_string(options_.bucket_bytes)
                                + " must be at least 1");
  for (auto& group : optimizer_->param_groups())
    parameters_.insert(parameters_.end(), group.params().begin(), group.params().end());
  if (parameters_.empty())
    throw std::invalid_argument("wrap_optimizer: the optimizer has no parameters");
  if (rule_)
    rule_->begin(*optimizer_, parameters_);
  if (!communicator_)
    return;
  std::size_t first = 0;
  while (first < parameters_.size()) {
    std::int64_t elements = 0;
    std::size_t end = first;
    while (end < parameters_.size() && same_bucket(parameters_[end], parameters_[first])
           && (end == first
               || (elements + parameters_[end].numel()) * parameters_[end].element_size()
                      <= options_.bucket_bytes))
      elements += parameters_[end++].numel();
    add_bucket(first, end - first, elements);
    first = end;
  }
  broadcast_parameters();
}

WrappedOptimizer::~WrappedOptimizer() = default;

void WrappedOptimizer::add_bucket(std::size_t first, std::size_t count, std::int64_t elements) {
  Bucket bucket;
  bucket.first = first;
  bucket.count = count;
  const auto flags = static_cast<std::int64_t>(count);
  bucket.flat = at::zeros({elements + flags}, parameters_[first].options().requires_grad(false));
  bucket.flags = bucket.flat.narrow(0, elements, flags);
  std::int64_t begin = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const auto& parameter = parameters_[i];
    auto view = bucket.flat.narrow(0, begin, parameter.numel());
    // In the parameter's own layout (channels last), so that the update goes straight through.
    bucket.views.push_back(parameter.is_non_overlapping_and_dense()
                               ? view.as_strided(parameter.sizes(), parameter.strides())
                               : view.view(parameter.sizes()));
    begin += parameter.numel();
  }
  buckets_.push_back(std::move(bucket));
}

void WrappedOptimizer::broadcast_parameters() {
  const at::NoGradGuard guard;
  for (auto& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.count; ++i)
      bucket.views[i].copy_(parameters_[bucket.first + i]);
    communicator_->broadcast(bucket.flat, 0);
    for (std::size_t i = 0; i < bucket.count; ++i)
      parameters_[bucket.first + i].copy_(bucket.views[i]);
  }
}

void WrappedOptimizer::set_max_gradient_norm(double norm) {
  check_norm_limit(norm);
  options_.max_gradient_norm = norm;
}

void WrappedOptimizer::zero_grad() {
  for (auto& parameter : parameters_)
    parameter.mutable_grad().reset();
}

void WrappedOptimizer::average_gradients() {
  for (auto& bucket : buckets_) {
    std::vector<double> has(bucket.count);
    for (std::size_t i = 0; i < bucket.count; ++i) {
      const auto& gradient = parameters_[bucket.first + i].grad();
      if (!gradient.defined())
        bucket.views[i].zero_();
      else if (!is_view(gradient, bucket.views[i]))
        bucket.views[i].copy_(gradient);
      has[i] = gradient.defined() ? 1 : 0;
    }
    bucket.flags.copy_(at::tensor(has));
    communicator_->all_reduce(bucket.flat, collectives::ReduceOp::mean);
    const auto flags = bucket.flags.to(at::kCPU, at::kDouble);
    const auto* present = flags.const_data_ptr<double>();
    for (std::size_t i = 0; i < bucket.count; ++i)
      if (present[i] > 0)
        parameters_[bucket.first + i].mutable_grad() = bucket.views[i];
  }
}

void WrappedOptimizer::measure_and_clip() {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters_)
    if (parameter.grad().defined())
      gradients.push_back(parameter.grad());
  gradient_norm_ = 0;
  if (gradients.empty())
    return;
  std::vector<at::Tensor> norms;
  for (const auto& norm : at::_foreach_norm(gradients, 2))
    norms.push_back(norm.to(at::kDouble));
  const auto each = at::stack(norms).cpu();
  gradient_norm_ = each.norm().item<double>();
  if (!std::isfinite(gradient_norm_))
    throw_not_finite();
  const double limit = options_.max_gradient_norm;
  if (limit > 0 && gradient_norm_ > limit)
    at::_foreach_mul_(gradients, limit / (gradient_norm_ + 1e-6));
}

void WrappedOptimizer::throw_not_finite() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& gradient = parameters_[i].grad();
    if (!gradient.defined() || std::isfinite(gradient.norm().item<double>()))
      continue;
    throw std::runtime_error(
        "the gradient of parameter " + std::to_string(i) + " of the optimizer, shape "
        + c10::str(parameters_[i].sizes()) + ", is not finite"
        + (communicator_
               ? " after averaging over " + std::to_string(communicator_->size()) + " replicas"
               : "")
        + "; the parameters were not changed. Look at the loss and the batch of this step, or "
          "lower "
          "the learning rate");
  }
  throw std::runtime_error("the norm of the gradients overflows; the parameters were not changed. "
                           "Lower the learning rate");
}

void WrappedOptimizer::step() {
  {
    const at::NoGradGuard guard;
    if (communicator_)
      average_gradients();
    measure_and_clip();
  }
  if (rule_)
    rule_->update();
  else
    optimizer_->step();
}

} // namespace troupe::learner
