#include "learner/agents/d4pg/d4pg.hpp"

#include <stdexcept>
#include <tuple>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/d4pg/d4pg.pb.h"
#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/nn/categorical.hpp"
#include "learner/nn/policy_head.hpp"

namespace troupe::learner {
namespace {

/// The networks. From states, policy and critic take the observation directly, and the critic also
/// the action. From pixels, both take the encoder's features through separate trunks (linear,
/// LayerNorm, tanh), and the action joins after the critic's trunk.
struct D4pgNetworks {
  D4pgNetworks(const D4pgConfig& config, const replay::TransitionSpec& transitions)
      : pixels(transitions.observation().type == env::ElementType::uint8),
        support{config.atoms, config.value_minimum, config.value_maximum} {
    require_continuous(transitions, "d4pg");
    if (pixels) {
      encoder = EncoderShape(config.encoder, picture_shape(transitions, "d4pg"),
                             config.encoder_channels, "d4pg.encoder");
      encoder.declare(critic_layout, "encoder");
      encoder_count = critic_layout.count();
    }
    const std::int64_t inputs = pixels ? encoder.features() : state_size(transitions, "d4pg");
    policy = Mlp(inputs, layers(config, config.policy_layers, transitions.action_size,
                                config.blocks.policy_blocks));
    critic =
        Mlp(inputs, layers(config, config.critic_layers, config.atoms, config.blocks.critic_blocks),
            pixels ? 1 : 0, transitions.action_size);
    critic.declare(critic_layout, "critic");
    policy.declare(policy_layout, "policy");
  }

  std::vector<LayerSpec> layers(const D4pgConfig& config, const std::vector<std::int64_t>& widths,
                                std::int64_t outputs, int blocks) const {
    std::vector<LayerSpec> made = relu_layers(widths, outputs, blocks);
    if (pixels)
      made.insert(made.begin(), {"trunk", config.feature_size, Activation::norm_tanh});
    else if (blocks == 0)
      for (std::size_t i = 0; i < widths.size(); ++i)
        made[i].activation = i == 0 && config.layer_norm ? Activation::norm_tanh : Activation::elu;
    made.back().exact = true; // bfloat16 would leave only two digits of the logits
    return made;
  }

  /// Writes initial parameters; `of_critic` and `of_policy` must be flat and dense.
  void initialise(const at::Tensor& of_critic, const at::Tensor& of_policy,
                  std::uint64_t seed) const {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    if (pixels)
      encoder.initialise(critic_layout, of_critic, generator);
    const auto weights = pixels ? Mlp::Weights::orthogonal : Mlp::Weights::uniform;
    critic.initialise(critic_layout, of_critic, weights, generator);
    policy.initialise(policy_layout, of_policy, weights, generator);
    const LayerTensors last = policy.bind(policy_layout, of_policy).back();
    last.weight.mul_(0.1); // actions are initially near 0, where tanh is not saturated
    last.bias.mul_(0.1);
  }

  bool pixels;
  Support support;
  EncoderShape encoder; // pixels only
  Mlp policy;
  Mlp critic;
  ParameterLayout critic_layout; // encoder, then critic: one optimizer
  ParameterLayout policy_layout;
  std::int64_t encoder_count = 0; // parameters of the encoder
};

class D4pgPolicy : public DeterministicPolicy {
public:
  D4pgPolicy(const D4pgConfig& config, const replay::TransitionSpec& transitions)
      : D4pgPolicy(config, transitions, D4pgNetworks(config, transitions)) {}

private:
  D4pgPolicy(const D4pgConfig& config, const replay::TransitionSpec& transitions,
             const D4pgNetworks& networks)
      : DeterministicPolicy("d4pg", transitions, networks.policy,
                            networks.pixels ? &networks.encoder : nullptr, config.noise,
                            config.blocks.normalise_observations) {}
};

class D4pg : public SavedReplica {
public:
  D4pg(const D4pgConfig& config, const replay::TransitionSpec& transitions)
      : config_(config), transitions_(transitions), networks_(config, transitions) {
    critic_.declare(networks_.critic_layout);
    policy_.declare(networks_.policy_layout);
    save_group("critic_", critic_, true);
    save_group("policy_", policy_, true, transitions.action_size);
    if (!config.blocks.normalise_observations)
      return;
    if (networks_.pixels)
      throw std::invalid_argument("d4pg.normalise_observations is true, but the environment gives "
                                  "pixels; it applies to states: leave it out");
    normalise_states(state_size(transitions, "d4pg"));
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  at::Tensor policy_parameters() override;
  at::Tensor action_values(const TensorMap& batch) override;

private:
  struct Inputs {
    at::Tensor observation; // network input: states, or features of the online encoder
    at::Tensor action;
    at::Tensor reward;
    at::Tensor discount;
    at::Tensor next_observation; // states, or features of the target encoder
    at::Tensor weight;           // undefined: all rows count equally
  };

  Inputs prepare(ReplicaContext& context, const TensorMap& batch);
  const at::Tensor& encode(EncoderTape& tape, const EncoderShape::Tensors& parameters,
                           const at::Tensor& images, PictureShifts shifts);
  const at::Tensor& target_logits(const Inputs& in);
  void learn_critic(const Inputs& in, const at::Tensor& target_logits);
  void learn_policy(const Inputs& in);

  D4pgConfig config_;
  replay::TransitionSpec transitions_;
  D4pgNetworks networks_;
  ParameterGroup critic_, policy_;
  std::unique_ptr<Encoder> encoder_;
  EncoderShape::Tensors encoder_parameters_, encoder_gradients_, encoder_target_;
  std::vector<LayerTensors> critic_parameters_, critic_gradients_, critic_target_;
  std::vector<LayerTensors> policy_parameters_, policy_gradients_, policy_target_;
  EncoderTape online_tape_, target_tape_;
  Tape critic_tape_, target_critic_tape_;
  Tape policy_tape_, target_policy_tape_;
  Workspace workspace_;
};

void D4pg::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  const ParameterLayout& layout = networks_.critic_layout;
  const at::TensorOptions on_cpu = options().device(at::kCPU);
  const at::Tensor critic = at::zeros({layout.count()}, on_cpu);
  const at::Tensor policy = at::zeros({networks_.policy_layout.count()}, on_cpu);
  networks_.initialise(critic, policy, context.seed());
  Training training{.learning_rate = config_.critic_learning_rate,
                    .gradient_norm = config_.gradient_norm,
                    .weight_decay = config_.blocks.weight_decay,
                    .rounding = rounding()};
  critic_.build(context, critic.to(options().device()), training);
  training.learning_rate = config_.policy_learning_rate;
  policy_.build(context, policy.to(options().device()), training);
  critic_parameters_ = networks_.critic.bind(layout, critic_.flat(), critic_.half());
  critic_gradients_ = networks_.critic.bind(layout, critic_.gradient());
  critic_target_ = networks_.critic.bind(layout, critic_.target(), critic_.target_half());
  policy_parameters_ = networks_.policy.bind(policy_.layout(), policy_.flat(), policy_.half());
  policy_gradients_ = networks_.policy.bind(policy_.layout(), policy_.gradient());
  policy_target_ = networks_.policy.bind(policy_.layout(), policy_.target(), policy_.target_half());
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
  const auto of = [&](const char* name) { return batch.at(name).to(options()); };
  Inputs in;
  in.action = of("action");
  in.reward = of("reward");
  in.discount = of("discount");
  if (batch.contains("weight"))
    in.weight = of("weight");
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
  // Pixels: the online policy with the target encoder's features. States: the target policy.
  const at::Tensor& raw =
      networks_.policy.forward(networks_.pixels ? policy_parameters_ : policy_target_,
                               in.next_observation, {}, target_policy_tape_, workspace_);
  return networks_.critic.forward(critic_target_, in.next_observation, tanh_of(raw),
                                  target_critic_tape_, workspace_);
}

/// From pixels, this also trains the encoder.
void D4pg::learn_critic(const Inputs& in, const at::Tensor& target_logits) {
  const auto critic = span("critic");
  const at::Tensor& logits = networks_.critic.forward(critic_parameters_, in.observation, in.action,
                                                      critic_tape_, workspace_);
  RowLosses rows{.weight = in.weight, .losses = {}};
  if (in.weight.defined())
    rows.losses = at::empty_like(in.weight);
  const at::Tensor loss =
      categorical_loss(networks_.support, target_logits, in.reward, in.discount,
                       config_.reward_scale, logits, critic_tape_.gradient(), workspace_, rows);
  networks_.critic.backward(critic_parameters_, critic_gradients_, critic_tape_, networks_.pixels,
                            workspace_);
  if (networks_.pixels)
    encoder_->backward(encoder_parameters_, encoder_gradients_, online_tape_,
                       critic_tape_.input_gradient);
  in_update().step(critic_, "critic_loss", loss);
  in_update().tell("critic_loss", loss);
  if (in.weight.defined())
    in_update().tell_rows(rows.losses.clamp_min(0));
}

void D4pg::learn_policy(const Inputs& in) {
  const auto policy = span("policy");
  const at::Tensor action = tanh_of(
      networks_.policy.forward(policy_parameters_, in.observation, {}, policy_tape_, workspace_));
  const at::Tensor& logits = networks_.critic.forward(critic_parameters_, in.observation, action,
                                                      critic_tape_, workspace_);
  const at::Tensor value = expected_value(networks_.support, logits, critic_tape_.gradient());
  networks_.critic.backward_to_extra(critic_parameters_, critic_tape_, workspace_);
  const HeadReport head = policy_head_backward(
      policy_tape_.output(), action, critic_tape_.extra_gradient, config_.action_gradient_norm,
      config_.saturation_penalty, policy_tape_.gradient());
  networks_.policy.backward(policy_parameters_, policy_gradients_, policy_tape_, false, workspace_);
  const at::Tensor loss = head.penalty - value;
  in_update().step(policy_, "policy_loss", loss);
  in_update().tell("policy_loss", loss);
  in_update().tell("q_mean", value);
  in_update().tell("saturation", head.saturation);
}

Metrics D4pg::step_fn(ReplicaContext& context, const TensorMap& batch) {
  const WithoutAutograd without;
  const TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  Metrics metrics = make_update(used, 0, [&](const TensorMap& on_device) {
    auto targets = span("targets");
    const Inputs in = prepare(context, on_device);
    const at::Tensor& target = target_logits(in);
    targets.end();
    learn_critic(in, target);
    learn_policy(in);
  });
  const std::int64_t times = finish_update(critic_, metrics, config_.target_period);
  critic_.average_target(config_.target_update, times);
  policy_.average_target(config_.target_update, times);
  return metrics;
}

at::Tensor D4pg::policy_parameters() {
  at::NoGradGuard no_gradient;
  if (!networks_.pixels)
    return published(policy_.target());
  // The policy is trained with the online encoder's features.
  return published(at::cat({critic_.flat().narrow(0, 0, networks_.encoder_count), policy_.flat()}));
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

Members members(D4pgConfig& config) {
  Members all{{"policy_layers", &config.policy_layers},
              {"critic_layers", &config.critic_layers},
              {"layer_norm", &config.layer_norm},
              {"atoms", &config.atoms},
              {"value_minimum", &config.value_minimum},
              {"value_maximum", &config.value_maximum},
              {"policy_learning_rate", &config.policy_learning_rate},
              {"critic_learning_rate", &config.critic_learning_rate},
              {"target_update", &config.target_update},
              {"target_period", &config.target_period},
              {"gradient_norm", &config.gradient_norm},
              {"action_gradient_norm", &config.action_gradient_norm},
              {"saturation_penalty", &config.saturation_penalty},
              {"reward_scale", &config.reward_scale},
              {"encoder", &config.encoder},
              {"encoder_channels", &config.encoder_channels},
              {"feature_size", &config.feature_size},
              {"shift_pixels", &config.shift_pixels},
              {"precision", &config.precision},
              {"batch_size", &config.batch_size}};
  config.blocks.add_members(all);
  config.noise.add_members(all);
  return all;
}

std::vector<OptionProblem> problems(const D4pgConfig& config, const AgentSetting& setting) {
  std::vector<OptionProblem> support;
  if (config.value_minimum >= config.value_maximum)
    support.push_back({"value_minimum", "is " + number_text(config.value_minimum)
                                            + "; it must be below d4pg.value_maximum, "
                                            + number_text(config.value_maximum)});
  return all_problems(
      {config.noise.problems("d4pg"), support,
       config.blocks.problems("d4pg", config.policy_layers, config.critic_layers, setting),
       encoder_problems("d4pg", config.encoder, config.shift_pixels, setting)});
}

} // namespace

AgentPtr make_d4pg_agent(const D4pgConfig& config) {
  return std::make_shared<const ConfiguredAgent<D4pgConfig, D4pg, D4pgPolicy>>(config);
}

AgentKind d4pg_agent() {
  return agent_kind<D4pgConfig>(
      {.name = "d4pg",
       .help = "distributed distributional DDPG (Barth-Maron et al. 2018)",
       .pixels = true,
       .metrics = {"critic_loss", "policy_loss", "q_mean", "saturation", "gradient_norm"},
       .options = agents::D4pg::descriptor()},
      members, problems, make_d4pg_agent);
}

} // namespace troupe::learner
