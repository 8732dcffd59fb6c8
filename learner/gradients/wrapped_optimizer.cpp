#include "learner/gradients/wrapped_optimizer.hpp"

#include <chrono>
#include <cmath>
#include <string>

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <torch/optim/optimizer.h>

#include "collectives/communicator.hpp"
#include "learner/gradients/gradient_buckets.hpp"
#include "learner/gradients/not_finite.hpp"
#include "learner/gradients/saved_optimizer.hpp"
#include "learner/gradients/sharded_state.hpp"
#include "learner/gradients/update_rule.hpp"
#include "learner/gradients/wrapped_options.hpp"

namespace troupe::learner {

using collectives::Timeline;

namespace {

constexpr std::int64_t kTriedBytes[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr int kStepsEach = 4;

/// Checks a state before anything is changed.
void check_saved(const TensorMap& state, const std::vector<at::Tensor>& parameters) {
  const auto& steps = state.at("wrapped.steps");
  if (steps.numel() != 1 || steps.scalar_type() != at::kLong || steps.item<std::int64_t>() < 0)
    throw std::runtime_error(
        "the wrapped optimizer's state has a 'wrapped.steps' that is not a number "
        "of updates; load what its state() gave");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto name = "residual." + std::to_string(i);
    const auto found = state.find(name);
    if (found == state.end())
      continue;
    const auto sizes = found->second.sizes();
    if (sizes.empty() || sizes[0] < 1 || sizes.slice(1) != parameters[i].sizes())
      throw std::runtime_error("the wrapped optimizer's state has '" + name + "' of shape "
                               + c10::str(sizes) + "; it must be [replicas, …] of the parameter's, "
                               + c10::str(parameters[i].sizes()));
  }
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

WrappedOptimizer::WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                                   collectives::Communicator* communicator,
                                   const WrappedOptimizerOptions& options,
                                   std::shared_ptr<UpdateRule> rule)
    : optimizer_(std::move(optimizer)),
      rule_(std::move(rule)),
      communicator_(!rule_ && communicator && communicator->size() > 1 ? communicator : nullptr),
      options_(options) {
  for (auto& group : optimizer_->param_groups()) {
    parameters_.insert(parameters_.end(), group.params().begin(), group.params().end());
    if (!options_.schedules.empty())
      base_rates_.push_back(group.options().get_lr());
  }
  check_wrapped(options_, parameters_.size(), optimizer_->param_groups().size());
  if (rule_)
    check_without_average(options_);
  if (!options_.clock)
    options_.clock = steady_seconds;
  if (rule_)
    rule_->begin(*optimizer_, parameters_);
  if (!communicator_)
    return;
  if (options_.bucket_bytes == 0 && !options_.deterministic)
    tuner_.emplace(std::vector<std::int64_t>(std::begin(kTriedBytes), std::end(kTriedBytes)),
                   kStepsEach);
  if (options_.bucket_bytes == 0)
    options_.bucket_bytes = kTriedBytes[0];
  buckets_ = std::make_unique<GradientBuckets>(
      parameters_, *communicator_,
      GradientBucketsOptions{.bucket_bytes = options_.bucket_bytes,
                             .overlap = options_.overlap,
                             .keep_order = options_.deterministic,
                             .operation = options_.operation,
                             .compression = options_.compression,
                             .timeline = options_.timeline});
  buckets_->broadcast_parameters();
  if (options_.shard_optimizer_state)
    sharded_ = std::make_unique<ShardedState>(*optimizer_, communicator_);
}

WrappedOptimizer::~WrappedOptimizer() = default;

void WrappedOptimizer::set_max_gradient_norm(double norm) {
  check_norm_limit(norm);
  options_.max_gradient_norm = norm;
}

std::int64_t WrappedOptimizer::bucket_bytes() const {
  return options_.bucket_bytes;
}
std::int64_t WrappedOptimizer::buckets() const {
  return buckets_ ? static_cast<std::int64_t>(buckets_->size()) : 0;
}
std::int64_t WrappedOptimizer::buckets_sent_early() const {
  return buckets_ ? buckets_->sent_during_backward() : 0;
}

void WrappedOptimizer::zero_grad() {
  if (micro_batches_ > 0)
    return;
  if (!buckets_) {
    for (auto& parameter : parameters_)
      parameter.mutable_grad().reset();
    return;
  }
  buckets_->clear();
  if (options_.accumulate == 1)
    buckets_->arm(1);
}

bool WrappedOptimizer::step() {
  if (++micro_batches_ == options_.accumulate) {
    update(1.0 / options_.accumulate, true);
    return skipped_in_a_row_ == 0;
  }
  if (buckets_) {
    buckets_->next_micro_batch();
    if (micro_batches_ + 1 == options_.accumulate)
      buckets_->arm(1.0 / options_.accumulate);
  }
  return false;
}

/// Returns false when no replica has gradients any more.
bool WrappedOptimizer::update(double scale, bool stepping) {
  const at::NoGradGuard no_gradient;
  micro_batches_ = 0;
  if (buckets_) {
    const auto report = buckets_->reduce(scale, stepping);
    if (report.stepping.empty())
      return false;
    stepping_ = report.stepping;
    if (report.not_finite >= 0) {
      leave_out(not_finite_on_replicas(report, parameters_, options_.names, communicator_->size()));
      return true;
    }
  }
  const auto gradients = this->gradients();
  if (!buckets_)
    stepping_ = {0};
  const auto replicas = buckets_ ? static_cast<std::size_t>(communicator_->size()) : 1;
  double factor = buckets_ ? 1 : scale; // reduce() has applied the scale
  if (stepping_.size() < replicas && options_.operation == GradientOperation::mean
      && !options_.join_mean_over_all)
    factor = static_cast<double>(replicas) / static_cast<double>(stepping_.size());
  if (factor != 1 && !gradients.empty())
    at::_foreach_mul_(gradients, factor);
  if (const auto problem = measure_and_clip(gradients); !problem.empty()) {
    leave_out(problem);
    return true;
  }
  skipped_in_a_row_ = 0;
  apply_schedules();
  {
    const at::AutoGradMode gradient(true); // callers of optimizers have gradients enabled
    const Timeline::Span span(options_.timeline, "optimizer");
    if (rule_)
      rule_->update();
    else
      optimizer_->step();
  }
  if (sharded_)
    sharded_->publish();
  updates_applied_ = rule_ ? rule_->updates_applied() : 1;
  ++steps_;
  tune();
  return true;
}

int WrappedOptimizer::join(const std::vector<at::Tensor>& state) {
  if (rule_)
    throw std::invalid_argument("join: only for replicas that average their gradients; under this "
                                "strategy no replica waits for one that has ended");
  if (micro_batches_ > 0)
    update(1.0 / micro_batches_, true);
  if (!buckets_)
    return 0;
  while (update(1, false)) {
  }
  const int last = stepping_.empty() ? 0 : stepping_.back();
  const at::NoGradGuard no_gradient;
  for (const auto& tensor : state) {
    auto mine = tensor.detach();
    communicator_->broadcast(mine, last);
  }
  return last;
}

/// The gradients of the parameters that have one.
std::vector<at::Tensor> WrappedOptimizer::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters_)
    if (parameter.grad().defined())
      gradients.push_back(parameter.grad());
  return gradients;
}

/// Counts a skipped step, or throws. With a rule, other replicas may wait for this one, which
/// therefore takes part without a gradient.
void WrappedOptimizer::leave_out(const std::string& problem) {
  if (++skipped_in_a_row_ > options_.skip_not_finite)
    throw std::runtime_error(
        "update " + std::to_string(steps_ + 1) + ": " + problem
        + (options_.skip_not_finite > 0
               ? ", after " + std::to_string(options_.skip_not_finite) + " that were left out"
               : std::string())
        + "; the parameters were not changed. Look at the loss and the batch of this step there, "
          "lower the learning rate, or raise skip_not_finite");
  ++skipped_;
  for (auto& parameter : parameters_)
    parameter.mutable_grad().reset();
  if (rule_)
    rule_->update();
  updates_applied_ = rule_ ? rule_->updates_applied() : 0;
}

/// Returns "", or why the step cannot be made.
std::string WrappedOptimizer::measure_and_clip(const std::vector<at::Tensor>& gradients) {
  gradient_norm_ = 0;
  if (gradients.empty())
    return "";
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2);
  for (at::Tensor& norm : norms)
    norm = norm.to(at::kDouble);
  const at::Tensor all = norms.size() == 1 ? norms.front() : at::stack(norms).norm();
  gradient_norm_ = all.item<double>();
  if (!std::isfinite(gradient_norm_))
    return not_finite_in_all(parameters_, options_.names,
                             communicator_ ? communicator_->size() : 1);
  const double limit = options_.max_gradient_norm;
  if (limit > 0 && gradient_norm_ > limit)
    at::_foreach_mul_(gradients, limit / (gradient_norm_ + 1e-6));
  return "";
}

at::Tensor WrappedOptimizer::clip_on_device() const {
  const at::NoGradGuard no_gradient;
  const auto all = gradients();
  const auto norm = at::stack(at::_foreach_norm(all, 2)).to(at::kDouble).norm();
  const double limit = options_.max_gradient_norm;
  if (limit > 0) { // device scalars: at::where would copy one from the host
    const auto factor = at::where(norm > limit, limit / (norm + 1e-6), at::ones_like(norm));
    at::_foreach_mul_(all, factor.to(all.front().scalar_type()));
  }
  return norm;
}

bool WrappedOptimizer::finish_step(double gradient_norm) {
  const at::NoGradGuard no_gradient;
  gradient_norm_ = gradient_norm;
  if (!std::isfinite(gradient_norm)) {
    leave_out(not_finite_in_all(parameters_, options_.names, 1));
    return false;
  }
  skipped_in_a_row_ = 0;
  apply_schedules();
  updates_applied_ = 1;
  ++steps_;
  return true;
}

std::vector<double> WrappedOptimizer::next_learning_rates() const {
  std::vector<double> rates;
  const auto& groups = optimizer_->param_groups();
  const int replicas = options_.replicas_in_sync > 0 ? options_.replicas_in_sync
                       : communicator_               ? communicator_->size()
                                                     : 1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (options_.schedules.empty()) {
      rates.push_back(groups[i].options().get_lr());
      continue;
    }
    const auto& schedule = options_.schedules[options_.schedules.size() == 1 ? 0 : i];
    rates.push_back(base_rates_[i] * schedule.multiple(steps_, replicas));
  }
  return rates;
}

void WrappedOptimizer::apply_schedules() {
  const auto rates = next_learning_rates();
  for (std::size_t i = 0; i < base_rates_.size(); ++i)
    optimizer_->param_groups()[i].options().set_lr(rates[i]);
}

/// Measures whole steps, from update to update, by replica 0's clock.
void WrappedOptimizer::tune() {
  if (!tuner_ || tuner_->done())
    return;
  const double now = options_.clock();
  const double seconds = now - std::exchange(last_time_, now);
  if (steps_ == 1 || !tuner_->add(seconds))
    return;
  if (tuner_->done()) {
    auto fastest = at::full({1}, static_cast<std::int64_t>(tuner_->fastest()),
                            at::TensorOptions(at::kLong).device(parameters_[0].device()));
    communicator_->broadcast(fastest, 0);
    tuner_->settle(static_cast<std::size_t>(fastest.item<std::int64_t>()));
  }
  options_.bucket_bytes = tuner_->current();
  buckets_->set_bucket_bytes(options_.bucket_bytes);
}

TensorMap WrappedOptimizer::state() {
  const at::NoGradGuard no_gradient;
  TensorMap result;
  ShardedState whole(*optimizer_, nullptr);
  save_optimizer(sharded_ ? *sharded_ : whole, options_.names, result);
  result["wrapped.steps"] = at::full({1}, steps_, at::kLong);
  if (rule_)
    result.merge(rule_->state());
  if (!buckets_)
    return result;
  const auto states = buckets_->compression_state();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].residual.defined())
      result["residual." + std::to_string(i)] =
          at::stack(communicator_->all_gather(states[i].residual.contiguous()));
    if (states[i].factor.defined())
      result["factor." + std::to_string(i)] = states[i].factor.clone();
  }
  return result;
}

void WrappedOptimizer::load(const TensorMap& state) {
  const at::NoGradGuard no_gradient;
  const auto steps = state.find("wrapped.steps");
  if (steps == state.end())
    throw std::runtime_error(
        "the wrapped optimizer's state lacks 'wrapped.steps'; load what its state() gave");
  check_saved(state, parameters_);
  const auto updates = steps->second.item<std::int64_t>();
  if (rule_)
    rule_->load(state, updates);
  ShardedState whole(*optimizer_, nullptr);
  load_optimizer(sharded_ ? *sharded_ : whole, options_.names, state);
  steps_ = updates;
  if (!buckets_)
    return;
  auto states = buckets_->compression_state();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (const auto found = state.find("residual." + std::to_string(i)); found != state.end()) {
      // Saved by another number of replicas: each gets the same share of what the reduced gradient
      // lacks, which is the mean or the sum of the residuals.
      const auto& rows = found->second;
      const auto replicas = options_.operation == GradientOperation::sum
                                ? static_cast<std::int64_t>(communicator_->size())
                                : rows.size(0);
      states[i].residual = rows.size(0) == communicator_->size() ? rows[communicator_->rank()]
                                                                 : rows.sum(0) / replicas;
    }
    if (const auto found = state.find("factor." + std::to_string(i)); found != state.end())
      states[i].factor = found->second;
  }
  buckets_->set_compression_state(states);
}

} // namespace troupe::learner
