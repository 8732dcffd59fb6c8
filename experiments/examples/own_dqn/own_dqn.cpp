// Deep Q-learning (Mnih et al. 2015) as a plug-in. README.md builds it step by step.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/types.h>

#include "learner/agents/learners/group_replica.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/exploration.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/plugin.hpp"

namespace own {

using namespace troupe;
using namespace troupe::learner;

constexpr const char* kName = "own_dqn";

struct Config {
  std::vector<std::int64_t> layers; // widths of the hidden layers
  double learning_rate;
  std::int64_t target_period; // updates between copies to the target network
  EpsilonConfig epsilon;      // probability of random choices
  std::int64_t batch_size;    // transitions per update
};

/// Estimates the values of all choices in a state.
class QNetwork {
public:
  QNetwork(const Config& config, const replay::TransitionSpec& transitions)
      : choices_(one_choice(transitions, kName)),
        torso_(layout_, kName, transitions, {.widths = config.layers}),
        head_(layout_, "values", torso_.features(), choices_) {}

  const ParameterLayout& layout() const { return layout_; }
  std::int64_t choices() const { return choices_; }

  at::Tensor initial(at::Generator& generator) const {
    const at::Tensor flat = at::zeros({layout_.count()}, at::kFloat);
    torso_.initialise(layout_, flat, generator);
    head_.initialise(layout_, flat, generator);
    return flat;
  }
  /// Returns [batch, choices].
  at::Tensor values(const Leaves& leaves, const Observed& observation) const {
    return head_.forward(leaves, torso_.forward(leaves, observation));
  }

private:
  ParameterLayout layout_; // places of all layers in one flat tensor
  std::int64_t choices_;
  Torso torso_; // hidden layers with ReLU
  Linear head_;
};

/// The acting side: takes the choice with the greatest value, or a random one to explore.
class Acting : public Policy {
public:
  Acting(const Config& config, const replay::TransitionSpec& transitions)
      : epsilon_(config.epsilon),
        transitions_(transitions),
        network_(config, transitions),
        parameters_(at::zeros({network_.layout().count()}, at::kFloat)),
        leaves_(leaves_of(network_.layout(), parameters_)) {}

  std::int64_t parameter_count() const override { return network_.layout().count(); }
  void load(std::span<const float> parameters) override {
    load_parameters(parameters, parameters_, kName);
  }

  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override {
    at::NoGradGuard no_gradient;
    const Observed seen = observed(observations, transitions_, actions);
    const at::Tensor best = network_.values(leaves_, seen).argmax(1).to(at::kFloat);
    std::copy_n(best.const_data_ptr<float>(), actions.size(), actions.data());
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    act(observations, actions);
    epsilon_.apply(exploration, network_.choices(), actions);
  }

private:
  EpsilonGreedy epsilon_;
  replay::TransitionSpec transitions_;
  QNetwork network_;
  at::Tensor parameters_;
  Leaves leaves_; // views of the parameters, one per layer
};

/// The learning side: steps towards the reward plus the discounted value of the next state.
class Learning : public GroupReplica {
public:
  Learning(const Config& config, const replay::TransitionSpec& transitions)
      : GroupReplica({.learning_rate = config.learning_rate,
                      .gradient_norm = 10,
                      .precision = "float32",
                      .target = true},
                     QNetwork(config, transitions).layout()),
        config_(config),
        transitions_(transitions),
        network_(config, transitions) {}

  void build(ReplicaContext& context) override {
    GroupReplica::build(context);
    targets_ = leaves_of(network_.layout(), group().target());
  }

  Metrics step_fn(ReplicaContext&, const TensorMap& given) override {
    const std::int64_t before = updates();
    const TensorMap batch = checked_transitions(given, transitions_, before + 1);
    check_choices(batch.at("action"), network_.choices(), before + 1);
    group().gradient().zero_();
    at::Tensor value;
    at::Tensor loss;
    {
      const at::AutoGradMode with_gradient(true);
      const auto of = [&](const char* name) { return batch.at(name).to(options().device()); };
      const auto seen = [&](const char* name) {
        return observed(batch, name, transitions_, options());
      };
      const at::Tensor next = network_.values(targets_, seen("next_observation")).amax(1);
      const at::Tensor target = of("reward") + of("discount") * next;
      value = network_.values(leaves(), seen("observation"))
                  .gather(1, of("action").to(at::kLong))
                  .squeeze(1);
      loss = at::huber_loss(value, target);
      loss.backward(); // writes to group().gradient()
    }
    const at::NoGradGuard no_gradient;
    group().step("loss", loss.item<double>(), before + 1); // first averages over the replicas
    count_updates(group().optimizer().updates_applied());
    if (updates() / config_.target_period > before / config_.target_period)
      group().average_target(1, 1); // copies the parameters
    return {{"loss", loss.item<double>()}, {"q_mean", value.mean().item<double>()}};
  }

private:
  at::Tensor initial(at::Generator& generator) const override {
    return network_.initial(generator);
  }

  Config config_;
  replay::TransitionSpec transitions_;
  QNetwork network_;
  Leaves targets_; // views of the target network; they have no gradients
};

AgentPtr make(const env::Options& options) {
  const auto refuse = [&](const char* key, const std::string& rule) {
    throw std::invalid_argument("option " + std::string(key) + " is " + options.text(key, "")
                                + "; it must be " + rule);
  };
  const auto count = [&](const char* key, std::int64_t otherwise) {
    const std::int64_t value = options.integer(key, otherwise);
    if (value < 1 || value > 1'000'000'000)
      refuse(key, "from 1 to 1000000000");
    return value;
  };
  const auto fraction = [&](const char* key, double otherwise) {
    const double value = options.number(key, otherwise);
    if (value < 0 || value > 1)
      refuse(key, "from 0 to 1");
    return value;
  };
  const std::int64_t width = count("width", 128);
  return std::make_shared<const ConfiguredAgent<Config, Learning, Acting>>(
      Config{.layers = {width, width},
             .learning_rate = fraction("learning_rate", 1e-3),
             .target_period = count("target_period", 200),
             .epsilon = {.probability = {.start = fraction("epsilon_start", 1),
                                         .end = fraction("epsilon_end", 0.05),
                                         .steps = count("epsilon_steps", 8000)}},
             .batch_size = count("batch_size", 64)});
}

} // namespace own

TROUPE_AGENTS({.name = own::kName,
               .help = "deep Q-learning, as an example of a plug-in",
               .make = own::make,
               .metrics = "loss q_mean",
               .actions = troupe::learner::ActionKind::choice});
