#include "learner/agents/drqv2/drqv2.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/drqv2/drqv2.pb.h"
#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/learners/twin_critic.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"

namespace troupe::learner {
namespace {

struct Networks {
  Networks(const Drqv2Config& config, const replay::TransitionSpec& transitions)
      : encoder(config.encoder, picture_shape(transitions, "drqv2"), config.encoder_channels,
                "drqv2.encoder") {
    require_continuous(transitions, "drqv2");
    const LayerSpec to_features{"trunk", config.feature_size, Activation::norm_tanh};
    trunk = Mlp(encoder.features(), {to_features});
    auto layers = relu_layers(config.policy_layers, transitions.action_size);
    layers.insert(layers.begin(), to_features);
    policy = Mlp(encoder.features(), std::move(layers));
    encoder.declare(front, "encoder");
    encoder_count = front.count();
    trunk.declare(front, "critic");
    policy.declare(policy_layout, "policy");
  }

  EncoderShape encoder;
  Mlp trunk;             // shared by both critics
  Mlp policy;            // begins with its own trunk
  ParameterLayout front; // encoder and trunk: one optimizer with the critics
  ParameterLayout policy_layout;
  std::int64_t encoder_count = 0; // parameters of the encoder
};

class Drqv2Policy : public DeterministicPolicy {
public:
  Drqv2Policy(const Drqv2Config& config, const replay::TransitionSpec& transitions)
      : Drqv2Policy(config, transitions, Networks(config, transitions)) {}

private:
  Drqv2Policy(const Drqv2Config& config, const replay::TransitionSpec& transitions,
              const Networks& networks)
      : DeterministicPolicy("drqv2", transitions, networks.policy, &networks.encoder,
                            ActionNoiseConfig{.scale = config.noise}) {}
};

class Drqv2 : public SavedReplica {
public:
  Drqv2(const Drqv2Config& config, const replay::TransitionSpec& transitions)
      : config_(config),
        transitions_(transitions),
        networks_(config, transitions),
        critic_(config.feature_size, transitions.action_size, config.critic_layers,
                networks_.front) {
    policy_.declare(networks_.policy_layout);
    save_group("critic_", critic_.group(), true);
    save_group("policy_", policy_, false, transitions.action_size);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  TensorMap parameters() override;
  at::Tensor policy_parameters() override;
  at::Tensor action_values(const TensorMap& batch) override;

private:
  const at::Tensor& encode(const at::Tensor& images, PictureShifts shifts);
  PictureShifts drawn_shifts(const at::Tensor& images) {
    return in_update().shifts(images.size(0), config_.shift_pixels);
  }
  at::Tensor mean_action(const at::Tensor& features);
  at::Tensor with_noise(const at::Tensor& action);
  at::Tensor target_value(const at::Tensor& next_observation);
  double deviation() const {
    return config_.noise.at(
        static_cast<std::int64_t>(static_cast<double>(updates()) * config_.steps_per_update));
  }
  void learn(const TensorMap& batch);
  void learn_critic(const at::Tensor& features, const at::Tensor& action, const at::Tensor& target,
                    const at::Tensor& weight);
  void learn_policy(const at::Tensor& features);

  Drqv2Config config_;
  replay::TransitionSpec transitions_;
  Networks networks_;
  TwinCritic critic_;
  ParameterGroup policy_;
  std::unique_ptr<Encoder> encoder_;
  EncoderShape::Tensors encoder_parameters_, encoder_gradients_;
  std::vector<LayerTensors> trunk_parameters_, trunk_gradients_, trunk_target_;
  std::vector<LayerTensors> policy_parameters_, policy_gradients_;
  EncoderTape encoder_tape_; // for next and first observations in turn
  Tape trunk_tape_, policy_tape_;
  Workspace workspace_;
};

void Drqv2::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  const auto orthogonally = Mlp::Weights::orthogonal;
  const ParameterLayout& layout = critic_.group().layout();
  const at::Tensor flat = critic_.initial(options(), orthogonally, generator);
  networks_.encoder.initialise(layout, flat, generator);
  networks_.trunk.initialise(layout, flat, orthogonally, generator);
  critic_.build(context, flat.to(options().device()),
                {.learning_rate = config_.critic_learning_rate,
                 .gradient_norm = config_.gradient_norm,
                 .rounding = rounding()});
  const at::Tensor of_policy = at::zeros({policy_.layout().count()}, options().device(at::kCPU));
  networks_.policy.initialise(policy_.layout(), of_policy, orthogonally, generator);
  policy_.build(context, of_policy.to(options().device()),
                {.learning_rate = config_.policy_learning_rate,
                 .gradient_norm = config_.gradient_norm,
                 .rounding = rounding()});
  encoder_ = make_encoder(networks_.encoder, config_.precision, options().device());
  encoder_parameters_ = networks_.encoder.bind(layout, critic_.group().flat());
  encoder_gradients_ = networks_.encoder.bind(layout, critic_.group().gradient());
  ParameterGroup& critic = critic_.group();
  trunk_parameters_ = networks_.trunk.bind(layout, critic.flat(), critic.half());
  trunk_gradients_ = networks_.trunk.bind(layout, critic.gradient());
  trunk_target_ = networks_.trunk.bind(layout, critic.target(), critic.target_half());
  policy_parameters_ = networks_.policy.bind(policy_.layout(), policy_.flat(), policy_.half());
  policy_gradients_ = networks_.policy.bind(policy_.layout(), policy_.gradient());
}

/// Returns the features of the shifted images, valid until the next call.
const at::Tensor& Drqv2::encode(const at::Tensor& images, PictureShifts shifts) {
  const auto encoder = span("encoder");
  encoder_tape_.images = images.to(options().device());
  encoder_tape_.shifts = std::move(shifts);
  encoder_->forward(encoder_parameters_, encoder_tape_);
  return encoder_tape_.features;
}

at::Tensor Drqv2::mean_action(const at::Tensor& features) {
  return at::tanh(
      networks_.policy.forward(policy_parameters_, features, {}, policy_tape_, workspace_));
}

/// Adds clipped noise according to the schedule. Gradients ignore it.
at::Tensor Drqv2::with_noise(const at::Tensor& action) {
  if (deviation() == 0)
    return action;
  const at::Tensor size = in_update().number([this] { return deviation(); });
  return (in_update().normal(action.sizes()) * size)
      .clamp_(-config_.noise_clip, config_.noise_clip)
      .add_(action)
      .clamp_(-1, 1);
}

/// The target critics' value of the policy's noisy actions. There is no target encoder or target
/// policy.
at::Tensor Drqv2::target_value(const at::Tensor& next_observation) {
  const auto targets = span("targets");
  const at::Tensor& features = encode(next_observation, drawn_shifts(next_observation));
  const at::Tensor action = with_noise(mean_action(features));
  const at::Tensor& state =
      networks_.trunk.forward(trunk_target_, features, {}, trunk_tape_, workspace_);
  return critic_.target_value(state, action);
}

void Drqv2::learn_critic(const at::Tensor& features, const at::Tensor& action,
                         const at::Tensor& target, const at::Tensor& weight) {
  const auto critic = span("critic");
  const at::Tensor& state =
      networks_.trunk.forward(trunk_parameters_, features, {}, trunk_tape_, workspace_);
  const at::Tensor loss =
      critic_.backward(state, action, target, weight, 1, &trunk_tape_.gradient());
  networks_.trunk.backward(trunk_parameters_, trunk_gradients_, trunk_tape_, true, workspace_);
  encoder_->backward(encoder_parameters_, encoder_gradients_, encoder_tape_,
                     trunk_tape_.input_gradient);
  in_update().step(critic_.group(), "critic_loss", loss);
  in_update().tell("critic_loss", loss);
  if (weight.defined())
    in_update().tell_rows(critic_.errors());
}

/// Maximises the mean of the smaller critic values of the policy's actions.
void Drqv2::learn_policy(const at::Tensor& features) {
  const auto policy = span("policy");
  const at::Tensor mean = mean_action(features);
  const at::Tensor& state =
      networks_.trunk.forward(trunk_parameters_, features, {}, trunk_tape_, workspace_);
  const TwinCritic::Value value = critic_.value(state, with_noise(mean), true);
  policy_tape_.gradient().copy_((mean * mean - 1) * value.action_gradient);
  networks_.policy.backward(policy_parameters_, policy_gradients_, policy_tape_, false, workspace_);
  in_update().step(policy_, "policy_loss", -value.mean);
  in_update().tell("policy_loss", -value.mean);
  in_update().tell("q_mean", value.mean);
}

void Drqv2::learn(const TensorMap& batch) {
  const auto of = [&](const char* name) { return batch.at(name).to(options()); };
  const at::Tensor weight = batch.contains("weight") ? of("weight") : at::Tensor();
  const at::Tensor target =
      of("reward") + of("discount") * target_value(batch.at("next_observation"));
  const at::Tensor& images = batch.at("observation");
  const at::Tensor& features = encode(images, drawn_shifts(images));
  learn_critic(features, of("action"), target, weight);
  learn_policy(features);
}

Metrics Drqv2::step_fn(ReplicaContext&, const TensorMap& batch) {
  const WithoutAutograd without;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  Metrics metrics = make_update(used, deviation() == 0 ? 0 : 1,
                                [&](const TensorMap& on_device) { learn(on_device); });
  critic_.group().average_target(config_.target_update, finish_update(critic_.group(), metrics));
  return metrics;
}

TensorMap Drqv2::parameters() {
  TensorMap out = SavedReplica::parameters();
  std::erase_if(out, [](const auto& named) { return named.first.starts_with("target.encoder."); });
  return out;
}

at::Tensor Drqv2::policy_parameters() {
  at::NoGradGuard no_gradient;
  return at::cat({critic_.group().flat().narrow(0, 0, networks_.encoder_count), policy_.flat()})
      .to(at::kCPU, at::kFloat);
}

at::Tensor Drqv2::action_values(const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const at::Tensor& images = batch.at("observation");
  const at::Tensor& state = networks_.trunk.forward(
      trunk_parameters_, encode(images, unmoved(images.size(0))), {}, trunk_tape_, workspace_);
  return critic_.smaller_value(state, batch.at("action").to(options()));
}

Members members(Drqv2Config& config) {
  Members all{{"policy_layers", &config.policy_layers},
              {"critic_layers", &config.critic_layers},
              {"encoder", &config.encoder},
              {"encoder_channels", &config.encoder_channels},
              {"feature_size", &config.feature_size},
              {"shift_pixels", &config.shift_pixels},
              {"policy_learning_rate", &config.policy_learning_rate},
              {"critic_learning_rate", &config.critic_learning_rate},
              {"target_update", &config.target_update},
              {"noise_clip", &config.noise_clip},
              {"steps_per_update", &config.steps_per_update},
              {"gradient_norm", &config.gradient_norm},
              {"precision", &config.precision},
              {"batch_size", &config.batch_size}};
  config.noise.add_members(all);
  return all;
}

std::vector<OptionProblem> problems(const Drqv2Config& config, const AgentSetting& setting) {
  auto found =
      all_problems({config.noise.problems("drqv2"),
                    encoder_problems("drqv2", config.encoder, config.shift_pixels, setting)});
  if (setting.samples_per_insert > 0) {
    const double steps = static_cast<double>(config.batch_size) / setting.samples_per_insert;
    if (std::abs(config.steps_per_update - steps) > 1e-6 * steps)
      found.push_back(
          {"steps_per_update", "is " + number_text(config.steps_per_update)
                                   + "; it must be batch_size / replay.samples_per_insert, "
                                   + number_text(steps)});
  }
  return found;
}

} // namespace

AgentPtr make_drqv2_agent(const Drqv2Config& config) {
  return std::make_shared<const ConfiguredAgent<Drqv2Config, Drqv2, Drqv2Policy>>(config);
}

AgentKind drqv2_agent() {
  return agent_kind<Drqv2Config>(
      {.name = "drqv2",
       .help = "DrQ-v2, DDPG from shifted pixels (Yarats et al. 2021)",
       .states = false,
       .pixels = true,
       .metrics = {"critic_loss", "policy_loss", "q_mean", "gradient_norm"},
       .run = {.n_step = 3, .updates_per_step = 0.5, .publish_period = 1},
       .options = agents::Drqv2::descriptor()},
      members, problems, make_drqv2_agent);
}

} // namespace troupe::learner
