#include "learner/agents/learners/parameter_group.hpp"

#include <cmath>
#include <stdexcept>

#include <torch/types.h>

namespace troupe::learner {

void ParameterGroup::build(ReplicaContext& context, const at::Tensor& initial,
                           const Training& training) {
  flat_ = initial;
  gradient_ = at::zeros_like(flat_);
  learning_rate_ = training.learning_rate;
  max_gradient_norm_ = training.gradient_norm;
  schedule_ = context.learning_rates();
  auto adam = std::make_unique<FusedAdam>(flat_, training.learning_rate, training.weight_decay,
                                          training.adam_epsilon);
  adam_ = adam.get();
  optimizer_ = context.wrap_optimizer(std::move(adam));
  optimizer_->set_max_gradient_norm(training.gradient_norm);
  target_ = flat_.clone();
  half_ = Halves(flat_, training.rounding);
  target_half_ = Halves(target_, training.rounding);
}

void ParameterGroup::refresh_halves() {
  half_.refresh(flat_);
  target_half_.refresh(target_);
}

void ParameterGroup::complain(const char* loss_name, double loss, std::int64_t number,
                              const std::string& problem) const {
  const std::string update = "at update " + std::to_string(number);
  if (!std::isfinite(loss)) {
    const std::string where = layout_.first_not_finite(flat_);
    throw std::runtime_error(std::string(loss_name) + " is NaN or infinite " + update
                             + (where.empty()
                                    ? ": the networks' outputs overflowed; lower the learning rates"
                                    : ": parameter '" + where + "' is not finite"));
  }
  const std::string where = layout_.first_not_finite(gradient_);
  throw std::runtime_error(
      (where.empty() ? std::string() : "NaN or infinity in the gradient of '" + where + "' ")
      + update + " (" + loss_name + "): " + problem);
}

void ParameterGroup::step(const char* loss_name, double loss, std::int64_t update) {
  if (!std::isfinite(loss))
    complain(loss_name, loss, update);
  flat_.mutable_grad() = gradient_;
  if (schedule_.changes())
    adam_->param_groups().front().options().set_lr(rate_of(update));
  try {
    optimizer_->step();
  } catch (const collectives::CollectiveError&) {
    throw;
  } catch (const std::runtime_error& error) {
    complain(loss_name, loss, update, error.what());
  }
  half_.refresh(flat_);
}

at::Tensor ParameterGroup::step_on_device(const at::Tensor& loss, at::Tensor& problem,
                                          const at::Tensor& count, const at::Tensor& rate) {
  flat_.mutable_grad() = gradient_;
  const at::Tensor norm = at::linalg_vector_norm(gradient_, 2).to(at::kDouble);
  const at::Tensor sound = at::isfinite(norm).logical_and(at::isfinite(loss).squeeze());
  problem.copy_(at::maximum(problem, sound.logical_not().to(at::kFloat)));
  if (max_gradient_norm_ > 0) {
    const at::Tensor divisor = ((norm + 1e-6) / max_gradient_norm_).clamp_min(1);
    gradient_.div_(at::where(sound, divisor, at::ones_like(divisor)).to(gradient_.scalar_type()));
  }
  adam_->step_on_device(gradient_, count, problem, rate);
  half_.refresh(flat_);
  return norm;
}

void ParameterGroup::finish_on_device(const char* loss_name, double loss, double norm,
                                      std::int64_t update) {
  if (!std::isfinite(loss))
    complain(loss_name, loss, update);
  try {
    if (optimizer_->finish_step(norm))
      adam_->set_steps(adam_->steps() + 1);
  } catch (const std::runtime_error& error) {
    complain(loss_name, loss, update, error.what());
  }
}

void ParameterGroup::average_target(double weight, std::int64_t times) {
  if (times == 0)
    return;
  average_into(target_, flat_,
               times == 1 ? weight : 1 - std::pow(1 - weight, static_cast<double>(times)));
  target_half_.refresh(target_);
}

void ParameterGroup::show_parameters(TensorMap& out, bool with_target) const {
  layout_.show(flat_, "", out);
  if (with_target)
    layout_.show(target_, "target.", out);
}

void ParameterGroup::show_moments(TensorMap& out) const {
  layout_.show(adam_->mean(), "adam.exp_avg.", out);
  layout_.show(adam_->square(), "adam.exp_avg_sq.", out);
}

at::Tensor counter(std::int64_t value) {
  return at::full({1}, value, at::kLong);
}

} // namespace troupe::learner
