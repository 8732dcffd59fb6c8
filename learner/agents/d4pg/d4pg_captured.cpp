// D4PG's update without a read by the host in between.
#include <cmath>

#include "learner/agents/d4pg/d4pg_learner.hpp"
#include "learner/nn/activation_probe.hpp"

namespace troupe::learner {
namespace {

/// Of Captured::report.
enum Slot : std::int64_t {
  kCriticLoss,
  kPenalty,
  kSaturation,
  kValue,
  kCriticNorm,
  kPolicyNorm,
  kSlots
};
constexpr std::int64_t kWarmUp =
    3; // updates before one is captured: libraries set up what they need

} // namespace

/// Memory for batches like this one.
void D4pg::begin_whole(const TensorMap& batch) {
  const std::int64_t rows = batch.at("reward").size(0);
  const bool fits = captured_ && captured_->batch.size() == batch.size()
                    && captured_->batch.at("reward").size(0) == rows;
  if (fits)
    return;
  captured_.emplace();
  for (const auto& [name, tensor] : batch)
    captured_->batch[name] =
        at::empty_like(tensor, name.ends_with("observation") && networks_.pixels
                                   ? at::TensorOptions(at::kByte).device(options().device())
                                   : options());
  captured_->report = at::zeros({kSlots + rows}, options().dtype(at::kDouble));
  const auto steps = [&](ParameterGroup& group) {
    return at::full({1}, static_cast<double>(group.adam().steps()), options().dtype(at::kFloat));
  };
  captured_->critic_steps = steps(critic_);
  captured_->policy_steps = steps(policy_);
  captured_->problem = at::zeros({1}, options().dtype(at::kFloat));
  if (networks_.pixels)
    for (EncoderTape* tape : {&online_tape_, &target_tape_})
      tape->offsets = at::zeros({rows, 2}, options().dtype(at::kLong));
}

/// Adam, unless the gradient is not finite (then `captured_->problem` says so) or `other_problem`.
void D4pg::step_on_device(ParameterGroup& group, at::Tensor& steps, const at::Tensor& rate,
                          const at::Tensor& other_problem, std::int64_t slot) {
  const at::Tensor norm = at::linalg_vector_norm(group.gradient(), 2);
  captured_->report.select(0, slot).copy_(norm);
  at::Tensor problem = at::isfinite(norm).logical_not().to(at::kFloat).view({1});
  if (other_problem.defined())
    problem = at::maximum(problem, other_problem);
  else
    captured_->problem.copy_(problem);
  steps.add_(1 - problem);
  std::optional<at::Tensor> divisor;
  if (config_.gradient_norm > 0)
    divisor = ((norm + 1e-6) / config_.gradient_norm).clamp_min(1).to(at::kFloat);
  group.adam().step_on_device(group.gradient(), steps, divisor, problem, rate);
}

/// All of an update but the inputs' way here and the targets, which only a good update changes.
void D4pg::captured_update() {
  auto& report = captured_->report;
  const Inputs in = prepare(captured_->batch);
  const at::Tensor& targets = target_logits(in);
  const at::Tensor& logits = networks_.critic.forward(critic_parameters_, in.observation, in.action,
                                                      critic_tape_, workspace_);
  report.select(0, kCriticLoss)
      .copy_(categorical_loss_on_device(networks_.support, targets, in.reward, in.discount,
                                        config_.reward_scale, logits, critic_tape_.gradient(),
                                        row_losses(in)));
  if (in.weight.defined())
    report.narrow(0, kSlots, row_losses_.size(0)).copy_(row_losses_);
  critic_backward();
  step_on_device(critic_, captured_->critic_steps, captured_->critic_rate, {}, kCriticNorm);
  const at::Tensor& value = policy_value(in);
  report.select(0, kValue).copy_(
      expected_value_on_device(networks_.support, value, critic_tape_.gradient()));
  networks_.critic.backward_to_extra(critic_parameters_, critic_tape_, workspace_);
  report.narrow(0, kPenalty, 2)
      .copy_(policy_head_backward_on_device(
          policy_tape_.output(), actions_, critic_tape_.extra_gradient,
          config_.action_gradient_norm, config_.saturation_penalty, policy_tape_.gradient()));
  networks_.policy.backward(policy_parameters_, policy_gradients_, policy_tape_, false, workspace_);
  step_on_device(policy_, captured_->policy_steps, captured_->policy_rate, captured_->problem,
                 kPolicyNorm);
}

Metrics D4pg::step_whole(const TensorMap& batch) {
  begin_whole(batch);
  for (const auto& [name, tensor] : batch)
    captured_->batch.at(name).copy_(tensor, /*non_blocking=*/tensor.is_pinned());
  if (networks_.pixels)
    for (EncoderTape* tape : {&online_tape_, &target_tape_}) {
      tape->shifts.resize(static_cast<std::size_t>(batch.at("reward").size(0)));
      draw_shifts(random(), config_.shift_pixels, tape->shifts);
      tape->offsets.copy_(offsets_of(tape->shifts));
    }
  captured_->critic_rate = critic_.rate_on_device(updates() + 1);
  captured_->policy_rate = policy_.rate_on_device(updates() + 1);
  if (captured_->updates++ == kWarmUp && StepGraph::unavailable_reason(options().device()).empty())
    captured_->graph =
        std::make_unique<StepGraph>(options().device(), [this] { captured_update(); });
  if (captured_->graph && ActivationProbe::active() == nullptr)
    captured_->graph->replay();
  else
    captured_update();
  const at::Tensor report = captured_->report.cpu(); // the one read
  const auto* said = report.const_data_ptr<double>();
  const double policy_loss = said[kPenalty] - said[kValue];
  if (!std::isfinite(said[kCriticLoss]) || !std::isfinite(said[kCriticNorm]))
    critic_.complain("critic_loss", said[kCriticLoss], updates() + 1);
  critic_.adam().set_steps(critic_.adam().steps() + 1);
  if (!std::isfinite(policy_loss) || !std::isfinite(said[kPolicyNorm]))
    policy_.complain("policy_loss", policy_loss, updates() + 1);
  policy_.adam().set_steps(policy_.adam().steps() + 1);
  average_targets(1);
  priorities_ = batch.contains("weight")
                    ? report.narrow(0, kSlots, report.numel() - kSlots).clone().clamp_min_(0)
                    : at::Tensor();
  return {{"critic_loss", said[kCriticLoss]},
          {"policy_loss", policy_loss},
          {"q_mean", said[kValue]},
          {"saturation", said[kSaturation]},
          {"gradient_norm", said[kCriticNorm]}};
}

} // namespace troupe::learner
