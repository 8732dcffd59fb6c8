#include "learner/agents/mrq/mrq.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/mrq/mrq.pb.h"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/predictive/predictive_encoder.hpp"
#include "learner/agents/predictive/reward_scale.hpp"
#include "learner/agents/predictive/sequence_returns.hpp"
#include "learner/nn/kernels/precision.hpp"

namespace troupe::learner {
namespace {

using Which = PredictiveEncoder::Which;

std::vector<LayerSpec> policy_layers(const MrqConfig& config,
                                     const replay::TransitionSpec& transitions) {
  return activated_layers(config.policy_layers, Activation::norm_relu, transitions.action_size);
}

/// Selects row rows[i] of sequence i: [batch, …].
at::Tensor row_of(const at::Tensor& sequences, const at::Tensor& rows) {
  const at::Tensor chosen = rows.to(sequences.device());
  return at::index(sequences, {at::arange(sequences.size(0), chosen.options()), chosen});
}

class Mrq : public SavedReplica {
public:
  Mrq(const MrqConfig& config, const replay::TransitionSpec& transitions)
      : config_(config),
        transitions_(transitions),
        shape_("mrq", config.features, transitions),
        encoder_(config.features, shape_),
        policy_network_(config.features.state_features, policy_layers(config, transitions)),
        scale_(config.scale_rewards) {
    ParameterLayout of_critics, of_policy;
    for (std::size_t i = 0; i < 2; ++i) {
      networks_[i] = Mlp(config.features.pair_features,
                         activated_layers(config.critic_layers, Activation::norm_elu, 1));
      networks_[i].declare(of_critics, "critic" + std::to_string(i + 1));
    }
    policy_network_.declare(of_policy, "policy");
    critic_.declare(std::move(of_critics));
    policy_.declare(std::move(of_policy));
    save_group("encoder_", encoder_.group(), true);
    save_group("critic_", critic_, true);
    save_group("policy_", policy_, true, transitions.action_size);
    save_counter("steps", steps_);
  }

  void build(ReplicaContext& context) override;
  Metrics step_fn(ReplicaContext& context, const TensorMap& batch) override;
  TensorMap parameters() override;
  void load(const TensorMap& parameters, const TensorMap& optimizer_state) override;
  at::Tensor policy_parameters() override;
  at::Tensor action_values(const TensorMap& batch) override;

private:
  using Layers = std::vector<LayerTensors>;

  void learn(const TensorMap& batch);
  void learn_values(const TensorMap& batch);
  at::Tensor target_values(const TensorMap& batch);
  at::Tensor learn_critics(const at::Tensor& pair, const at::Tensor& target,
                           const at::Tensor& weight);
  void learn_policy(const at::Tensor& state);
  void begin_cycle();

  MrqConfig config_;
  replay::TransitionSpec transitions_;
  PredictiveShape shape_;
  PredictiveEncoder encoder_;
  std::array<Mlp, 2> networks_;
  Mlp policy_network_;
  ParameterGroup critic_, policy_;
  std::array<Layers, 2> critic_parameters_, critic_gradients_, critic_targets_;
  Layers policy_parameters_, policy_gradients_, policy_targets_;
  std::array<Tape, 2> tapes_, target_tapes_;
  Tape policy_tape_, target_policy_tape_;
  Workspace workspace_;
  std::int64_t steps_ = 0; // of this replica
  RewardScale scale_;
};

void Mrq::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, config_.precision);
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  Training training{.learning_rate = config_.encoder_learning_rate,
                    .weight_decay = config_.weight_decay,
                    .rounding = choose_rounding(config_.precision, options().device(), true)};
  encoder_.build(context, options(), generator, training, config_.precision);
  const at::TensorOptions on_cpu = options().device(at::kCPU);
  const at::Tensor critic = at::zeros({critic_.layout().count()}, on_cpu);
  const at::Tensor policy = at::zeros({policy_.layout().count()}, on_cpu);
  for (const Mlp& network : networks_)
    network.initialise(critic_.layout(), critic, Mlp::Weights::xavier, generator);
  policy_network_.initialise(policy_.layout(), policy, Mlp::Weights::xavier, generator);
  training.learning_rate = config_.policy_learning_rate;
  Training of_critics = training;
  of_critics.learning_rate = config_.critic_learning_rate;
  of_critics.gradient_norm = config_.gradient_norm;
  critic_.build(context, critic.to(options().device()), of_critics);
  policy_.build(context, policy.to(options().device()), training);
  for (std::size_t i = 0; i < 2; ++i) {
    critic_parameters_[i] = networks_[i].bind(critic_.layout(), critic_.flat(), critic_.half());
    critic_gradients_[i] = networks_[i].bind(critic_.layout(), critic_.gradient());
    critic_targets_[i] =
        networks_[i].bind(critic_.layout(), critic_.target(), critic_.target_half());
  }
  policy_parameters_ = policy_network_.bind(policy_.layout(), policy_.flat(), policy_.half());
  policy_gradients_ = policy_network_.bind(policy_.layout(), policy_.gradient());
  policy_targets_ = policy_network_.bind(policy_.layout(), policy_.target(), policy_.target_half());
  scale_.build();
}

/// The returns in units of the reward scale, plus the smaller target value of the target policy's
/// noisy action.
at::Tensor Mrq::target_values(const TensorMap& batch) {
  const auto targets = span("targets");
  const SequenceReturns returns =
      sequence_returns(batch, config_.n_step, transitions_.discount, options());
  const at::Tensor seen = row_of(batch.at("observation"), returns.last);
  const at::Tensor& state =
      encoder_.features_of(Which::previous, seen, encoder_.drawn_shifts(in_update(), seen.size(0)));
  at::Tensor action = at::tanh(
      policy_network_.forward(policy_targets_, state, {}, target_policy_tape_, workspace_));
  if (config_.target_noise > 0)
    action = (action
              + (in_update().normal(action.sizes()) * config_.target_noise)
                    .clamp_(-config_.target_noise_clip, config_.target_noise_clip))
                 .clamp_(-1, 1);
  const at::Tensor& pair = encoder_.pair_features(Which::previous, state, action);
  std::array<at::Tensor, 2> values;
  for (std::size_t i = 0; i < 2; ++i)
    values[i] =
        networks_[i].forward(critic_targets_[i], pair, {}, target_tapes_[i], workspace_).view({-1});
  const at::Tensor unit = in_update().number([this] { return scale_.current(); });
  const at::Tensor target_unit = in_update().number([this] { return scale_.of_targets(); });
  return (returns.reward + returns.discount * at::minimum(values[0], values[1]) * target_unit)
         / unit;
}

/// Trains both critics with the Huber loss. Returns the priorities of LAP.
at::Tensor Mrq::learn_critics(const at::Tensor& pair, const at::Tensor& target,
                              const at::Tensor& weight) {
  const auto critics = span("critic");
  const auto rows = static_cast<double>(target.size(0));
  at::Tensor priorities = at::ones_like(target);
  at::Tensor whole = at::zeros({}, target.options());
  for (std::size_t i = 0; i < 2; ++i) {
    const at::Tensor error =
        networks_[i].forward(critic_parameters_[i], pair, {}, tapes_[i], workspace_).view({-1})
        - target;
    const at::Tensor size = error.abs();
    const at::Tensor loss = at::where(size < 1, error.square() / 2, size - 0.5);
    whole = whole + (loss * weight).sum() / rows;
    tapes_[i].gradient().view({-1}).copy_(error.clamp(-1, 1) * weight / rows);
    networks_[i].backward(critic_parameters_[i], critic_gradients_[i], tapes_[i], false,
                          workspace_);
    priorities = at::maximum(priorities, size);
  }
  in_update().step(critic_, "critic_loss", whole);
  in_update().tell("critic_loss", whole);
  return priorities;
}

/// Maximises the mean of both critics minus the penalty on the output before the tanh.
void Mrq::learn_policy(const at::Tensor& state) {
  const auto policy = span("policy");
  const at::Tensor& before =
      policy_network_.forward(policy_parameters_, state, {}, policy_tape_, workspace_);
  const at::Tensor action = at::tanh(before);
  const at::Tensor& pair = encoder_.pair_features(Which::current, state, action);
  at::Tensor value = at::zeros({}, options());
  Layers none(critic_parameters_[0].size());
  for (std::size_t i = 0; i < 2; ++i) {
    value =
        value
        + networks_[i].forward(critic_parameters_[i], pair, {}, tapes_[i], workspace_).mean() / 2;
    tapes_[i].gradient().fill_(-0.5 / static_cast<double>(state.size(0)));
    networks_[i].backward(critic_parameters_[i], none, tapes_[i], true, workspace_, false);
  }
  const at::Tensor& of_action =
      encoder_.action_gradient(tapes_[0].input_gradient + tapes_[1].input_gradient);
  policy_tape_.gradient().copy_((1 - action * action) * of_action);
  at::Tensor loss = -value;
  if (config_.preactivation_weight > 0) {
    loss = loss + config_.preactivation_weight * before.square().mean();
    policy_tape_.gradient().add_(before, 2 * config_.preactivation_weight
                                             / static_cast<double>(before.numel()));
  }
  policy_network_.backward(policy_parameters_, policy_gradients_, policy_tape_, false, workspace_);
  in_update().step(policy_, "policy_loss", loss);
  in_update().tell("policy_loss", loss);
  in_update().tell("q_mean", value);
}

void Mrq::learn_values(const TensorMap& batch) {
  const at::Tensor within = steps_within(batch, 1, options()).view({-1});
  const at::Tensor weight =
      batch.contains("weight") ? within * batch.at("weight").to(options()) : within;
  const at::Tensor target = target_values(batch);
  const at::Tensor state = encoder_.first_features();
  const at::Tensor action = batch.at("action").select(1, 0).contiguous().to(options());
  const at::Tensor priorities =
      learn_critics(encoder_.pair_features(Which::current, state, action), target, weight);
  if (batch.contains("weight"))
    in_update().tell_rows(at::where(within > 0, priorities, at::ones_like(priorities)));
  learn_policy(state);
}

void Mrq::learn(const TensorMap& batch) {
  auto encoder = span("encoder");
  encoder_.learn(in_update(), batch);
  encoder.end();
  learn_values(batch);
}

/// Replaces the targets by copies. The target critics keep the scale that they were trained with.
void Mrq::begin_cycle() {
  encoder_.promote();
  for (ParameterGroup* group : {&critic_, &policy_})
    group->average_target(1, 1);
  scale_.end_period();
}

void Mrq::load(const TensorMap& parameters, const TensorMap& optimizer_state) {
  SavedReplica::load(parameters, optimizer_state);
  encoder_.refresh_previous();
}

Metrics Mrq::step_fn(ReplicaContext& context, const TensorMap& batch) {
  const WithoutAutograd without;
  const TensorMap used = checked_sequences(batch, transitions_, updates() + 1);
  scale_.see(context, used, transitions_.sequence_steps);
  Metrics metrics = make_update(used, 0, [&](const TensorMap& on_device) { learn(on_device); });
  finish_update(critic_, metrics);
  if (++steps_ % config_.period == 0)
    begin_cycle();
  metrics["reward_scale"] = scale_.current();
  return metrics;
}

TensorMap Mrq::parameters() {
  TensorMap out = SavedReplica::parameters();
  encoder_.show_previous(out);
  out["reward_scales"] = scale_.numbers();
  return out;
}

at::Tensor Mrq::policy_parameters() {
  at::NoGradGuard no_gradient;
  return at::cat({encoder_.group().target().narrow(0, 0, shape_.acting_count), policy_.flat()})
      .to(at::kCPU, at::kFloat);
}

/// The mean value of both critics.
at::Tensor Mrq::action_values(const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const at::Tensor& seen = batch.at("observation");
  const at::Tensor& state = encoder_.features_of(Which::current, seen, unmoved(seen.size(0)));
  const at::Tensor& pair =
      encoder_.pair_features(Which::current, state, batch.at("action").to(options()));
  at::Tensor sum = at::zeros({pair.size(0)}, options());
  for (std::size_t i = 0; i < 2; ++i)
    sum += networks_[i].forward(critic_parameters_[i], pair, {}, tapes_[i], workspace_).view({-1});
  return sum * (scale_.current() / 2);
}

class MrqPolicy : public DeterministicPolicy {
public:
  MrqPolicy(const MrqConfig& config, const replay::TransitionSpec& transitions)
      : MrqPolicy(config, transitions, PredictiveShape("mrq", config.features, transitions)) {}

private:
  MrqPolicy(const MrqConfig& config, const replay::TransitionSpec& transitions,
            const PredictiveShape& shape)
      : DeterministicPolicy(
          "mrq", transitions,
          whole(shape.inputs, shape.state_layers, policy_layers(config, transitions)),
          shape.pixels ? &shape.convolutions : nullptr, config.noise) {}

  /// Combines the layers of the features and of the policy in one network.
  static Mlp whole(std::int64_t inputs, std::vector<LayerSpec> layers,
                   const std::vector<LayerSpec>& behind) {
    for (LayerSpec& layer : layers)
      layer.name = "state." + layer.name;
    layers.insert(layers.end(), behind.begin(), behind.end());
    return Mlp(inputs, std::move(layers));
  }
};

class MrqAgent : public ConfiguredAgent<MrqConfig, Mrq, MrqPolicy> {
public:
  explicit MrqAgent(const MrqConfig& config)
      : ConfiguredAgent(config), steps_(std::max(config.features.horizon, config.n_step)) {}
  /// A sequence from each step. Its length is the horizon of the model or of the return, whichever
  /// is longer.
  Storage storage() const override { return {.sequence_steps = steps_}; }

private:
  std::int64_t steps_;
};

Members members(MrqConfig& config) {
  Members all{{"policy_layers", &config.policy_layers},
              {"critic_layers", &config.critic_layers},
              {"n_step", &config.n_step},
              {"period", &config.period},
              {"encoder_learning_rate", &config.encoder_learning_rate},
              {"policy_learning_rate", &config.policy_learning_rate},
              {"critic_learning_rate", &config.critic_learning_rate},
              {"weight_decay", &config.weight_decay},
              {"gradient_norm", &config.gradient_norm},
              {"preactivation_weight", &config.preactivation_weight},
              {"scale_rewards", &config.scale_rewards},
              {"target_noise", &config.target_noise},
              {"target_noise_clip", &config.target_noise_clip},
              {"precision", &config.precision},
              {"batch_size", &config.batch_size}};
  config.features.add_members(all);
  config.noise.add_members(all);
  return all;
}

std::vector<OptionProblem> problems(const MrqConfig& config, const AgentSetting& setting) {
  return all_problems({config.noise.problems("mrq"), config.features.problems("mrq", setting)});
}

} // namespace

AgentPtr make_mrq_agent(const MrqConfig& config) {
  return std::make_shared<const MrqAgent>(config);
}

AgentKind mrq_agent() {
  return agent_kind<MrqConfig>(
      {.name = "mrq",
       .help = "MR.Q with DR.Q's changes (Fujimoto et al. 2025): values on features that predict",
       .pixels = true,
       .metrics = {"critic_loss", "policy_loss", "q_mean", "encoder_loss", "dynamics_loss",
                   "reward_loss", "termination_loss", "contrast_loss", "reward_scale",
                   "gradient_norm"},
       .run = {.updates_per_step = 1},
       .options = agents::Mrq::descriptor()},
      members, problems, make_mrq_agent);
}

} // namespace troupe::learner
