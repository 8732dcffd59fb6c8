// An agent as a plug-in: twin delayed DDPG (Fujimoto, van Hoof and Meger 2018), built from the
// parts that the built-in agents share. It learns from states and has continuous actions.
// own_agent.textproto trains it.
#include <memory>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/learners/twin_critic.hpp"
#include "learner/agents/parts/exploration.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/plugin.hpp"

namespace own {

using namespace troupe;
using namespace troupe::learner;

struct Config {
  std::vector<std::int64_t> layers;
  std::int64_t batch_size;
  double learning_rate;
  double tau;          // rate of the target networks' exponential average
  double noise;        // exploration noise, in units of the action range [-1, 1]
  double target_noise; // noise that smooths the target action
  std::int64_t period; // critic updates per policy update
};

/// The acting side: tanh of a network of the state, with Gaussian noise for exploration.
class Acting : public MlpPolicy {
public:
  Acting(const Config& config, const replay::TransitionSpec& transitions)
      : MlpPolicy("own_td3", transitions,
                  Mlp(learner::state_size(transitions, "own_td3"),
                      relu_layers(config.layers, transitions.action_size))),
        noise_{config.noise, config.noise} {}

  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override {
    const float* raw = outputs(observations, actions);
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = std::tanh(raw[i]);
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    Policy::explore(observations, exploration, actions);
    add_noise(noise_, exploration, actions);
  }

private:
  Schedule noise_;
};

/// The learning side.
class Learning : public SavedReplica {
public:
  Learning(Config config, const replay::TransitionSpec& transitions)
      : config_(std::move(config)),
        transitions_(transitions),
        critic_(state_size(transitions, "own_td3"), transitions.action_size, config_.layers),
        network_(state_size(transitions, "own_td3"),
                 relu_layers(config_.layers, transitions.action_size)) {
    ParameterLayout layout;
    network_.declare(layout, "policy");
    policy_.declare(std::move(layout));
    save_group("critic_", critic_.group(), true); // saved in checkpoints
    save_group("policy_", policy_, true, transitions.action_size);
  }

  void build(ReplicaContext& context) override {
    at::NoGradGuard no_gradient;
    begin(context, "float32");
    at::Generator generator = at::detail::createCPUGenerator(context.seed());
    critic_.build(context, options(), generator, {.learning_rate = config_.learning_rate});
    const at::Tensor first = at::zeros({policy_.layout().count()});
    network_.initialise(policy_.layout(), first, Mlp::Weights::uniform, generator);
    policy_.build(context, first.to(options()), {.learning_rate = config_.learning_rate});
    parameters_ = network_.bind(policy_.layout(), policy_.flat());
    gradients_ = network_.bind(policy_.layout(), policy_.gradient());
    targets_ = network_.bind(policy_.layout(), policy_.target());
  }

  Metrics step_fn(ReplicaContext&, const TensorMap& given) override {
    at::NoGradGuard no_gradient;
    const bool with_policy = (updates() + 1) % config_.period == 0;
    Metrics metrics = make_update( // on a GPU each variant is replayed as one graph
        checked_transitions(given, transitions_, updates() + 1), with_policy ? 1 : 0,
        [&](const TensorMap& batch) {
          const auto part = [&](const char* name) { return batch.at(name).to(options()); };
          learn_critic(part("observation"), part("action"), part("reward"), part("discount"),
                       part("next_observation"));
          if (with_policy)
            learn_policy(part("observation"));
        });
    metrics.try_emplace("q_mean", 0); // until the policy's first update
    count_updates(1);
    if (with_policy) {
      critic_.group().average_target(config_.tau, 1);
      policy_.average_target(config_.tau, 1);
    }
    return metrics;
  }

  at::Tensor policy_parameters() override { return published(policy_.flat()); }

private:
  void learn_critic(const at::Tensor& state, const at::Tensor& taken, const at::Tensor& reward,
                    const at::Tensor& discount, const at::Tensor& next) {
    at::Tensor action = network_.forward(targets_, next, {}, target_tape_, workspace_).tanh();
    const at::Tensor noise = in_update().normal(action.sizes()) * config_.target_noise;
    action.add_(noise.clamp(-0.5, 0.5)).clamp_(-1, 1);
    critic_.learn(in_update(), state, taken, reward + discount * critic_.target_value(next, action),
                  {}, 1);
  }

  void learn_policy(const at::Tensor& state) {
    const at::Tensor action = network_.forward(parameters_, state, {}, tape_, workspace_).tanh();
    const TwinCritic::Value value = critic_.value(state, action, false);
    tape_.gradient().copy_((action * action - 1) * value.action_gradient); // gradient of -value
    network_.backward(parameters_, gradients_, tape_, false, workspace_);
    in_update().step(policy_, "policy_loss", -value.mean);
    in_update().tell("q_mean", value.mean);
  }

  Config config_;
  replay::TransitionSpec transitions_;
  TwinCritic critic_;
  Mlp network_;
  ParameterGroup policy_;
  std::vector<LayerTensors> parameters_, gradients_, targets_;
  Tape tape_, target_tape_;
  Workspace workspace_;
};

AgentPtr make(const env::Options& options) {
  const auto at_least_1 = [&](const char* key, std::int64_t otherwise) {
    const std::int64_t value = options.integer(key, otherwise);
    if (value < 1)
      throw std::invalid_argument("option " + std::string(key) + " is " + std::to_string(value)
                                  + "; it must be at least 1");
    return value;
  };
  const std::int64_t width = at_least_1("width", 256);
  return std::make_shared<const ConfiguredAgent<Config, Learning, Acting>>(
      Config{.layers = {width, width},
             .batch_size = at_least_1("batch_size", 256),
             .learning_rate = options.number("learning_rate", 3e-4),
             .tau = options.number("tau", 0.005),
             .noise = options.number("noise", 0.1),
             .target_noise = options.number("target_noise", 0.2),
             .period = at_least_1("period", 2)});
}

} // namespace own

TROUPE_AGENTS({.name = "own_td3",
               .help = "twin delayed DDPG, as an example of a plug-in",
               .make = own::make,
               .metrics = "critic_loss q_mean"});
