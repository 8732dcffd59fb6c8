#include "learner/agents/dqn/dqn.hpp"

#include <torch/types.h>

#include "learner/agents/dqn/dqn.pb.h"
#include "learner/agents/learners/q_learner.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/network_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/parts/value_streams.hpp"
#include "learner/nn/categorical.hpp"
#include "learner/nn/kernels/normal.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {
namespace {

/// The layers before the last hidden one, which belongs to the streams of values.
std::vector<std::int64_t> shared_layers(const DqnConfig& config) {
  std::vector<std::int64_t> widths = config.layers;
  if (!widths.empty())
    widths.pop_back();
  return widths;
}

/// The values of all choices, or the logits of their distributions.
class QNetwork {
public:
  QNetwork(const DqnConfig& config, const replay::TransitionSpec& transitions)
      : choices_(one_choice(transitions, "dqn")),
        support_{config.atoms, config.value_minimum, config.value_maximum},
        torso_(layout_, "dqn", transitions,
               {.encoder = config.encoder, .widths = shared_layers(config)}),
        streams_(layout_, {.features = torso_.features(),
                           .hidden = config.layers.empty() ? 0 : config.layers.back(),
                           .choices = choices_,
                           .atoms = support_.atoms,
                           .dueling = config.dueling,
                           .noisy = config.noisy}) {}

  const ParameterLayout& layout() const { return layout_; }
  std::int64_t choices() const { return choices_; }
  const Support& support() const { return support_; }
  bool is_distribution() const { return support_.atoms > 1; }

  at::Tensor initial(at::Generator& generator) const {
    const at::Tensor flat = at::zeros({layout_.count()}, at::kFloat);
    torso_.initialise(layout_, flat, generator);
    streams_.initialise(layout_, flat, generator);
    return flat;
  }

  /// [batch, choices, atoms]
  at::Tensor forward(const Leaves& leaves, const Observed& observation,
                     const NoiseSource* noise) const {
    return streams_.forward(leaves, torso_.forward(leaves, observation), noise);
  }

  /// Describes the network without noise.
  PolicyGraph describe(const Leaves& leaves, const replay::TransitionSpec& transitions) const {
    PolicyGraph graph = graph_of(transitions);
    torso_.describe(leaves, transitions, graph);
    streams_.describe(leaves, graph);
    graph.actions = {
        {.kind = is_distribution() ? GraphAction::Kind::distribution : GraphAction::Kind::choice,
         .choices = choices_,
         .atoms = support_.atoms,
         .minimum = support_.minimum,
         .maximum = support_.maximum}};
    return graph;
  }

  /// Converts the outputs of forward() to values [batch, choices].
  at::Tensor values(const at::Tensor& outputs) const {
    if (!is_distribution())
      return outputs.squeeze(2);
    return at::matmul(at::softmax(outputs, 2), support_.values(outputs.options()));
  }

private:
  ParameterLayout layout_;
  std::int64_t choices_;
  Support support_;
  Torso torso_;
  ValueStreams streams_;
};

class DqnPolicy : public NetworkPolicy<QNetwork> {
public:
  DqnPolicy(const DqnConfig& config, const replay::TransitionSpec& transitions)
      : NetworkPolicy("dqn", QNetwork(config, transitions), transitions),
        config_(config),
        epsilon_(config.epsilon) {}

  void act(const Observations& observations, std::span<float> actions) override {
    choose(observations, nullptr, actions);
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    Random random(config_.noisy ? exploration.random[0]->generator() : 0);
    const NoiseSource noise = [&](std::int64_t size) { return normal(random, {size}); };
    choose(observations, config_.noisy ? &noise : nullptr, actions);
    epsilon_.apply(exploration, network().choices(), actions);
  }
  bool has_density() const override { return !config_.noisy && epsilon_.has_density(); }
  void log_probability(const Observations& observations, const Exploration& exploration,
                       std::span<const float> actions, std::span<double> out) override {
    if (!has_density())
      return Policy::log_probability(observations, exploration, actions, out);
    std::vector<float> best(actions.size());
    choose(observations, nullptr, best);
    epsilon_.log_probability(exploration, network().choices(), best, actions, out);
  }
  void save_exploration(std::vector<std::byte>& out) const override { epsilon_.save_state(out); }
  std::span<const std::byte> load_exploration(std::span<const std::byte> in) override {
    return epsilon_.load_state(in);
  }

private:
  void choose(const Observations& observations, const NoiseSource* noise,
              std::span<float> actions) {
    at::NoGradGuard no_gradient;
    const at::Tensor outputs = network().forward(leaves(), seen(observations, actions), noise);
    const at::Tensor best = best_choices(network().values(outputs)).to(at::kFloat);
    std::copy_n(best.const_data_ptr<float>(), actions.size(), actions.data());
  }

  DqnConfig config_;
  EpsilonGreedy epsilon_;
};

class Dqn : public NetworkQLearner<DqnConfig, QNetwork> {
public:
  using NetworkQLearner::NetworkQLearner;

  at::Tensor action_values(const TensorMap& batch) override;

private:
  TensorMap checked(const TensorMap& batch) const override;
  Learnt backward(const TensorMap& batch) override;
  at::Tensor target_of_choice(const Observed& next);
  const NoiseSource* noise() const { return config_.noisy ? &noise_ : nullptr; }

  NoiseSource noise_ = [this](std::int64_t size) { return in_update().normal({size}); };
  Workspace workspace_;
};

TensorMap Dqn::checked(const TensorMap& batch) const {
  TensorMap used = checked_transitions(batch, transitions_, updates() + 1);
  check_choices(used.at("action"), network_.choices(), updates() + 1);
  return used;
}

/// The target network's logits of the best next choice, [batch, atoms].
at::Tensor Dqn::target_of_choice(const Observed& next) {
  const auto of_targets = span("targets");
  at::NoGradGuard no_gradient;
  const at::Tensor outputs = network_.forward(targets(), next, noise());
  const at::Tensor best =
      network_.values(config_.double_q ? network_.forward(leaves(), next, noise()) : outputs)
          .argmax(1, true);
  return outputs.gather(1, best.unsqueeze(2).expand({-1, 1, outputs.size(2)})).squeeze(1);
}

Dqn::Learnt Dqn::backward(const TensorMap& batch) {
  const auto of = [&](const char* name) { return batch.at(name).to(options()); };
  const auto seen = [&](const char* name) {
    return observed(batch, name, transitions_, options());
  };
  const at::Tensor weight = batch.contains("weight") ? of("weight") : at::Tensor();
  const at::Tensor target = target_of_choice(seen("next_observation"));
  const at::Tensor outputs = network_.forward(leaves(), seen("observation"), noise());
  const at::Tensor taken = batch.at("action")
                               .to(options().device(), at::kLong)
                               .unsqueeze(2)
                               .expand({-1, 1, outputs.size(2)});
  const at::Tensor chosen = outputs.gather(1, taken).squeeze(1);
  if (!network_.is_distribution()) {
    const at::Tensor wanted = (of("reward") + of("discount") * target.squeeze(1)).detach();
    const at::Tensor value = chosen.squeeze(1);
    const at::Tensor losses = at::huber_loss(value, wanted, at::Reduction::None);
    const at::Tensor loss = (weight.defined() ? losses * weight : losses).mean();
    loss.backward();
    return {loss.detach(), value.detach().mean(), (value - wanted).detach().abs()};
  }
  at::Tensor gradient = at::empty_like(chosen);
  RowLosses rows{.weight = weight, .losses = at::empty({chosen.size(0)}, options())};
  const at::Tensor loss = categorical_loss(network_.support(), target, of("reward"), of("discount"),
                                           1, chosen.detach(), gradient, workspace_, rows);
  chosen.backward(gradient);
  return {loss, network_.values(chosen.detach().unsqueeze(1)).mean(), rows.losses};
}

at::Tensor Dqn::action_values(const TensorMap& batch) {
  at::NoGradGuard no_gradient;
  const at::Tensor values = network_.values(
      network_.forward(leaves(), observed(batch, "observation", transitions_, options()), nullptr));
  return values.gather(1, batch.at("action").to(options().device(), at::kLong)).squeeze(1);
}

Members members(DqnConfig& config) {
  Members made{{"layers", &config.layers},
               {"encoder", &config.encoder},
               {"double_q", &config.double_q},
               {"dueling", &config.dueling},
               {"noisy", &config.noisy},
               {"atoms", &config.atoms},
               {"value_minimum", &config.value_minimum},
               {"value_maximum", &config.value_maximum},
               {"learning_rate", &config.learning_rate},
               {"adam_epsilon", &config.adam_epsilon},
               {"target_period", &config.target_period},
               {"gradient_norm", &config.gradient_norm},
               {"precision", &config.precision},
               {"batch_size", &config.batch_size}};
  config.epsilon.add_members(made);
  return made;
}

std::vector<OptionProblem> problems(const DqnConfig& config, const AgentSetting& setting) {
  std::vector<OptionProblem> found = small_pictures("dqn", config.encoder, setting);
  if (config.atoms > 1 && config.value_minimum >= config.value_maximum)
    found.push_back({"value_minimum", "is " + number_text(config.value_minimum)
                                          + "; it must be below dqn.value_maximum, "
                                          + number_text(config.value_maximum)});
  return found;
}

} // namespace

AgentPtr make_dqn_agent(const DqnConfig& config) {
  return std::make_shared<const ConfiguredAgent<DqnConfig, Dqn, DqnPolicy>>(config);
}

AgentKind dqn_agent() {
  return agent_kind<DqnConfig>({.name = "dqn",
                                .help = "deep Q-learning with Rainbow's parts (Mnih et al. 2015, "
                                        "Hessel et al. 2018)",
                                .pixels = true,
                                .both = true,
                                .actions = ActionKind::choice,
                                .metrics = {"critic_loss", "q_mean", "gradient_norm"},
                                .run = {.n_step = 1, .updates_per_step = 0.25, .publish_period = 1},
                                .options = agents::Dqn::descriptor()},
                               members, problems, make_dqn_agent);
}

} // namespace troupe::learner
