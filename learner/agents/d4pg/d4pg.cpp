#include <optional>
#include <stdexcept>
#include <tuple>

#include <torch/types.h>

#include "learner/agents/d4pg/d4pg_networks.hpp"
#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/nn/policy_head.hpp"

namespace troupe::learner {
namespace {

class D4pg : public SavedReplica {
public:
  D4pg(const D4pgConfig& config, const D4pgSpec& spec)
      : config_(config), spec_(spec), networks_(config, spec) {
    critic_.declare(networks_.critic_layout);
    policy_.declare(networks_.policy_layout);
    save_group("critic_", critic_, true);
    save_group("policy_", policy_, true);
    if (config.blocks.normalise_observations) {
      if (networks_.pixels)
        throw std::invalid_argument("d4pg.normalise_observations is true, but the environment "
                                    "gives pixels; it is of states: leave it out");
      normalise_states(networks_.observation_size);
    }
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  at::Tensor policy_parameters() override;
  at::Tensor action_values(const TensorMap& batch) override;

private:
  struct Inputs {
    at::Tensor observation; // as the networks want it: states, or features of the online encoder
    at::Tensor action;
    at::Tensor reward;
    at::Tensor discount;
    at::Tensor next_observation; // states, or features of the target encoder
    at::Tensor weight;           // undefined: each row counts once
  };

  Inputs prepare(ReplicaContext& context, const TensorMap& batch);
  const at::Tensor& encode(EncoderTape& tape, const EncoderShape::Tensors& parameters,
                           const at::Tensor& images, PictureShifts shifts);
  const at::Tensor& target_logits(const Inputs& in);
  RowLosses row_losses(const Inputs& in);
  void critic_backward();
  const at::Tensor& policy_value(const Inputs& in);
  void learn_critic(const Inputs& in, const at::Tensor& target_logits);
  void learn_policy(const Inputs& in);
  void average_targets(std::int64_t applied);

  D4pgConfig config_;
  D4pgSpec spec_;
  D4pgNetworks networks_;
  ParameterGroup critic_;
  ParameterGroup policy_;
  EncoderShape::Tensors encoder_parameters_;
  EncoderShape::Tensors encoder_gradients_;
  EncoderShape::Tensors encoder_target_;
  std::vector<LayerTensors> critic_parameters_;
  std::vector<LayerTensors> critic_gradients_;
  std::vector<LayerTensors> critic_target_;
  std::vector<LayerTensors> policy_parameters_;
  std::vector<LayerTensors> policy_gradients_;
  std::vector<LayerTensors> policy_target_;
  std::unique_ptr<Encoder> encoder_;
  EncoderTape online_tape_;
  EncoderTape target_tape_;
  Tape critic_tape_;
  Tape target_critic_tape_;
  Tape policy_tape_;
  Tape target_policy_tape_;
  at::Tensor actions_;
  at::Tensor next_actions_;
  at::Tensor row_losses_;
  Workspace workspace_;
};

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
}

const at::Tensor& D4pg::encode(EncoderTape& tape, const EncoderShape::Tensors& parameters,
                               const at::Tensor& images, PictureShifts shifts) {
  tape.images = images.to(options().device());
  tape.shifts = std::move(shifts);
  encoder_->forward(parameters, tape);
  return tape.features;
}

D4pg::Inputs D4pg::prepare(ReplicaContext& context, const TensorMap& batch) {
  Inputs in;
  in.action = batch.at("action").to(options());
  in.reward = batch.at("reward").to(options());
  in.discount = batch.at("discount").to(options());
  if (batch.contains("weight"))
    in.weight = batch.at("weight").to(options());
  if (networks_.pixels) {
    const auto shifted = [&](EncoderTape& tape, const EncoderShape::Tensors& parameters,
                             const at::Tensor& images) {
      return encode(tape, parameters, images,
                    in_update().shifts(images.size(0), config_.shift_pixels));
    };
    in.observation = shifted(online_tape_, encoder_parameters_, batch.at("observation"));
    in.next_observation = shifted(target_tape_, encoder_target_, batch.at("next_observation"));
  } else {
    std::tie(in.observation, in.next_observation) = states(context, batch);
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

void D4pg::learn_critic(const Inputs& in, const at::Tensor& target_logits) {
  const auto critic = span("critic");
  const at::Tensor& logits = networks_.critic.forward(critic_parameters_, in.observation, in.action,
                                                      critic_tape_, workspace_);
  const at::Tensor loss = categorical_loss(networks_.support, target_logits, in.reward, in.discount,
                                           config_.reward_scale, logits, critic_tape_.gradient(),
                                           workspace_, row_losses(in));
  critic_backward();
  in_update().step(critic_, "critic_loss", loss);
  in_update().tell("critic_loss", loss);
  if (in.weight.defined())
    in_update().tell_rows(row_losses_.clamp_min(0));
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

void D4pg::learn_policy(const Inputs& in) {
  const auto policy = span("policy");
  const at::Tensor& logits = policy_value(in);
  const at::Tensor value = expected_value(networks_.support, logits, critic_tape_.gradient());
  networks_.critic.backward_to_extra(critic_parameters_, critic_tape_, workspace_);
  const HeadReport head = policy_head_backward(
      policy_tape_.output(), actions_, critic_tape_.extra_gradient, config_.action_gradient_norm,
      config_.saturation_penalty, policy_tape_.gradient());
  networks_.policy.backward(policy_parameters_, policy_gradients_, policy_tape_, false, workspace_);
  const at::Tensor loss = head.penalty - value;
  in_update().step(policy_, "policy_loss", loss);
  in_update().tell("policy_loss", loss);
  in_update().tell("q_mean", value);
  in_update().tell("saturation", head.saturation);
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
  Metrics metrics = make_update(used, 0, [&](const TensorMap& on_device) {
    auto targets = span("targets");
    const Inputs in = prepare(context, on_device);
    const at::Tensor& target = target_logits(in);
    targets.end();
    learn_critic(in, target);
    learn_policy(in);
  });
  average_targets(critic_.optimizer().updates_applied());
  metrics["gradient_norm"] = critic_.optimizer().gradient_norm();
  return metrics;
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

at::Tensor D4pg::action_values(const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const at::Tensor& seen = batch.at("observation");
  const at::Tensor state =
      networks_.pixels ? encode(online_tape_, encoder_parameters_, seen, unmoved(seen.size(0)))
                       : state_of(batch);
  const at::Tensor& logits = networks_.critic.forward(
      critic_parameters_, state, batch.at("action").to(options()), critic_tape_, workspace_);
  return at::matmul(at::softmax(logits, 1), networks_.support.values(options()))
         / config_.reward_scale;
}

} // namespace

std::unique_ptr<Replica> make_d4pg(const D4pgConfig& config, const D4pgSpec& spec) {
  return std::make_unique<D4pg>(config, spec);
}

} // namespace troupe::learner
