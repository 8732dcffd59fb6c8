#include <cmath>
#include <stdexcept>
#include <utility>

#include "learner/agents/d4pg/d4pg_learner.hpp"
#include "learner/agents/parts/transition_batch.hpp"

namespace troupe::learner {

void D4pg::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  const at::Tensor critic =
      at::zeros({networks_.critic_layout.count()}, options().device(at::kCPU));
  const at::Tensor policy =
      at::zeros({networks_.policy_layout.count()}, options().device(at::kCPU));
  networks_.initialise(critic, policy, context.seed());
  critic_.build(context, critic.to(options().device()), config_.critic_learning_rate,
                config_.gradient_norm, config_.blocks.weight_decay);
  policy_.build(context, policy.to(options().device()), config_.policy_learning_rate,
                config_.gradient_norm, config_.blocks.weight_decay);
  const auto& layout = networks_.critic_layout;
  critic_parameters_ = networks_.critic.bind(layout, critic_.flat());
  critic_gradients_ = networks_.critic.bind(layout, critic_.gradient());
  critic_target_ = networks_.critic.bind(layout, critic_.target());
  policy_parameters_ = networks_.policy.bind(networks_.policy_layout, policy_.flat());
  policy_gradients_ = networks_.policy.bind(networks_.policy_layout, policy_.gradient());
  policy_target_ = networks_.policy.bind(networks_.policy_layout, policy_.target());
  if (networks_.pixels) {
    encoder_parameters_ = networks_.encoder.bind(layout, critic_.flat());
    encoder_gradients_ = networks_.encoder.bind(layout, critic_.gradient());
    encoder_target_ = networks_.encoder.bind(layout, critic_.target());
    encoder_ = make_encoder(networks_.encoder, config_.precision, options().device());
  }
  captured_.reset();
  steps_whole_ = captures(capture_, options().device()) && critic_.optimizer().steps_alone();
}

const at::Tensor& D4pg::encode(EncoderTape& tape, const EncoderShape::Tensors& parameters,
                               const at::Tensor& images) {
  tape.images = images.to(options().device());
  if (!captured_) {
    tape.shifts.resize(static_cast<std::size_t>(images.size(0)));
    draw_shifts(random(), config_.shift_pixels, tape.shifts);
  }
  encoder_->forward(parameters, tape);
  return tape.features;
}

D4pg::Inputs D4pg::prepare(const TensorMap& batch) {
  Inputs in;
  in.action = batch.at("action").to(options());
  in.reward = batch.at("reward").to(options());
  in.discount = batch.at("discount").to(options());
  if (batch.contains("weight"))
    in.weight = batch.at("weight").to(options());
  if (networks_.pixels) {
    in.observation = encode(online_tape_, encoder_parameters_, batch.at("observation"));
    in.next_observation = encode(target_tape_, encoder_target_, batch.at("next_observation"));
  } else {
    in.observation = batch.at("observation").to(options());
    in.next_observation = batch.at("next_observation").to(options());
  }
  if (moments() != nullptr) {
    in.observation = moments()->normalised(in.observation);
    in.next_observation = moments()->normalised(in.next_observation);
  }
  return in;
}

const at::Tensor& D4pg::target_logits(const Inputs& in) {
  // Pixels: the online policy on the target encoder's features; states: the target policy.
  const at::Tensor& raw =
      networks_.policy.forward(networks_.pixels ? policy_parameters_ : policy_target_,
                               in.next_observation, {}, target_policy_tape_, workspace_);
  if (!next_actions_.defined() || next_actions_.size(0) != raw.size(0))
    next_actions_ = at::empty_like(raw);
  tanh_into(raw, next_actions_);
  return networks_.critic.forward(critic_target_, in.next_observation, next_actions_,
                                  target_critic_tape_, workspace_);
}

RowLosses D4pg::row_losses(const Inputs& in) {
  RowLosses rows{.weight = in.weight, .losses = {}};
  if (in.weight.defined()) {
    if (!row_losses_.defined() || row_losses_.size(0) != in.weight.size(0))
      row_losses_ = at::empty_like(in.weight);
    rows.losses = row_losses_;
  }
  return rows;
}

/// From the gradient of the logits, and for pixels into the encoder.
void D4pg::critic_backward() {
  networks_.critic.backward(critic_parameters_, critic_gradients_, critic_tape_, networks_.pixels,
                            workspace_);
  if (networks_.pixels)
    encoder_->backward(encoder_parameters_, encoder_gradients_, online_tape_,
                       critic_tape_.input_gradient);
}

double D4pg::learn_critic(const Inputs& in, const at::Tensor& target_logits) {
  const at::Tensor& logits = networks_.critic.forward(critic_parameters_, in.observation, in.action,
                                                      critic_tape_, workspace_);
  const double loss = categorical_loss(networks_.support, target_logits, in.reward, in.discount,
                                       config_.reward_scale, logits, critic_tape_.gradient(),
                                       workspace_, row_losses(in));
  priorities_ =
      in.weight.defined() ? row_losses_.to(at::kCPU, at::kDouble).clamp_min_(0) : at::Tensor();
  critic_backward();
  critic_.step("critic_loss", loss, updates() + 1);
  return loss;
}

/// The critic's logits of the policy's actions.
const at::Tensor& D4pg::policy_value(const Inputs& in) {
  const at::Tensor& raw =
      networks_.policy.forward(policy_parameters_, in.observation, {}, policy_tape_, workspace_);
  if (!actions_.defined() || actions_.size(0) != raw.size(0))
    actions_ = at::empty_like(raw);
  tanh_into(raw, actions_);
  return networks_.critic.forward(critic_parameters_, in.observation, actions_, critic_tape_,
                                  workspace_);
}

HeadReport D4pg::learn_policy(const Inputs& in, double& q_mean) {
  const at::Tensor& logits = policy_value(in);
  q_mean = expected_value(networks_.support, logits, critic_tape_.gradient());
  networks_.critic.backward_to_extra(critic_parameters_, critic_tape_, workspace_);
  const HeadReport report = policy_head_backward(
      policy_tape_.output(), actions_, critic_tape_.extra_gradient, config_.action_gradient_norm,
      config_.saturation_penalty, policy_tape_.gradient());
  networks_.policy.backward(policy_parameters_, policy_gradients_, policy_tape_, false, workspace_);
  policy_.step("policy_loss", report.penalty - q_mean, updates() + 1);
  return report;
}

/// Once for each of the updates that the parameters took, which the other replicas may have made.
void D4pg::average_targets(std::int64_t applied) {
  const auto before = updates() / config_.target_period;
  count_updates(applied);
  const auto times = updates() / config_.target_period - before;
  critic_.average_target(config_.target_update, times);
  policy_.average_target(config_.target_update, times);
}

Metrics D4pg::step_fn(ReplicaContext& context, const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const TensorMap used = checked_transitions(batch, spec_.transition, updates() + 1);
  if (moments() != nullptr)
    moments()->observe(context, used.at("observation").to(options()));
  if (steps_whole_)
    return step_whole(used);
  auto targets = span("targets");
  const Inputs in = prepare(used);
  const at::Tensor& target = target_logits(in);
  targets.end();
  auto critic = span("critic");
  const double critic_loss = learn_critic(in, target);
  critic.end();
  const double gradient_norm = critic_.optimizer().gradient_norm();
  double q_mean = 0;
  auto policy = span("policy");
  const HeadReport head = learn_policy(in, q_mean);
  policy.end();
  average_targets(critic_.optimizer().updates_applied());
  return {{"critic_loss", critic_loss},
          {"policy_loss", head.penalty - q_mean},
          {"q_mean", q_mean},
          {"saturation", head.saturation},
          {"gradient_norm", gradient_norm}};
}

void D4pg::load(const TensorMap& parameters, const TensorMap& optimizer_state) {
  SavedReplica::load(parameters, optimizer_state);
  captured_.reset(); // Adam's steps
}

at::Tensor D4pg::policy_parameters() {
  at::NoGradGuard no_gradient;
  if (networks_.pixels) // the policy learns on the online encoder's features
    return at::cat({critic_.flat().narrow(0, 0, networks_.encoder_count), policy_.flat()})
        .to(at::kCPU, at::kFloat);
  const at::Tensor target =
      policy_.target().to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  return moments() != nullptr ? at::cat({moments()->published(), target}) : target;
}

std::unique_ptr<Replica> make_d4pg(const D4pgConfig& config, const D4pgSpec& spec,
                                   UpdateCapture capture) {
  return std::make_unique<D4pg>(config, spec, capture);
}

} // namespace troupe::learner
