#include "learner/agents/r2d2/r2d2.hpp"

#include <utility>

#include <torch/types.h>

#include "learner/agents/learners/q_learner.hpp"
#include "learner/agents/parts/advantages.hpp"
#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/lstm.hpp"
#include "learner/agents/parts/network_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"
#include "learner/agents/parts/value_streams.hpp"
#include "learner/agents/r2d2/r2d2.pb.h"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {
namespace {

constexpr double kSlope = 1e-3; // slope of rescaled values at infinity, which makes them invertible

at::Tensor rescaled(const at::Tensor& x) {
  return x.sign() * ((x.abs() + 1).sqrt() - 1) + kSlope * x;
}

at::Tensor original(const at::Tensor& x) {
  const at::Tensor root = ((1 + 4 * kSlope * (x.abs() + 1 + kSlope)).sqrt() - 1) / (2 * kSlope);
  return x.sign() * (root.square() - 1);
}

/// The values of all choices in each step, computed from the state's value and the advantages. The
/// recurrent state is that of the LSTM, followed by the last choice plus 1, or 0.
class RecurrentQ {
public:
  RecurrentQ(const R2d2Config& config, const replay::TransitionSpec& transitions)
      : choices_(one_choice(transitions, "r2d2")),
        torso_(layout_, "r2d2", transitions, {.encoder = config.encoder, .widths = config.layers}),
        lstm_(layout_, "lstm", torso_.features() + choices_ + 1, config.lstm),
        streams_(layout_, {.features = config.lstm,
                           .hidden = config.lstm,
                           .choices = choices_,
                           .dueling = true}) {}

  const ParameterLayout& layout() const { return layout_; }
  std::int64_t choices() const { return choices_; }
  std::int64_t state_size() const { return lstm_.state_size() + 1; }

  at::Tensor initial(at::Generator& generator) const {
    const at::Tensor flat = at::zeros({layout_.count()}, at::kFloat);
    torso_.initialise(layout_, flat, generator);
    lstm_.initialise(layout_, flat, generator);
    streams_.initialise(layout_, flat, generator);
    return flat;
  }

  struct Output {
    at::Tensor values; // [batch, steps, choices]
    at::Tensor state;  // [batch, size of the LSTM's state]
  };
  /// observation: [batch, steps, …]; last: [batch, steps] int64, the last choice plus 1, or 0;
  /// state: [batch, size of the LSTM's state]; first: [batch, steps] or undefined.
  Output forward(const Leaves& leaves, const Observed& observation, const at::Tensor& last,
                 const at::Tensor& state, const at::Tensor& first = {}) const {
    const at::Tensor features = torso_.forward(
        leaves, observation.map([](const at::Tensor& x) { return x.flatten(0, 1); }));
    const at::Tensor choice = at::one_hot(last.flatten(), choices_ + 1).to(features.options());
    const at::Tensor x = at::cat({features, choice}, 1).unflatten(0, last.sizes());
    const Lstm::Output made = lstm_.forward(leaves, x, state, first);
    const at::Tensor values = streams_.forward(leaves, made.hidden.flatten(0, 1)).squeeze(2);
    return {values.unflatten(0, last.sizes()), made.state};
  }

  PolicyGraph describe(const Leaves& leaves, const replay::TransitionSpec& transitions) const {
    PolicyGraph graph = graph_of(transitions);
    torso_.describe(leaves, transitions, graph);
    graph.layers.push_back({.kind = GraphLayer::Kind::last_choice,
                            .inputs = torso_.features(),
                            .outputs = torso_.features() + choices_ + 1});
    lstm_.describe(leaves, graph);
    streams_.describe(leaves, graph);
    graph.actions = {{.kind = GraphAction::Kind::choice, .choices = choices_}};
    return graph;
  }

private:
  ParameterLayout layout_;
  std::int64_t choices_;
  Torso torso_;
  Lstm lstm_;
  ValueStreams streams_;
};

class R2d2Policy : public NetworkPolicy<RecurrentQ> {
public:
  R2d2Policy(const R2d2Config& config, const replay::TransitionSpec& transitions)
      : NetworkPolicy("r2d2", RecurrentQ(config, transitions), transitions),
        epsilon_(config.epsilon) {}

  std::int64_t state_size() const override { return network().state_size(); }
  void act(const Observations& observations, std::span<float> actions) override {
    choose(observations, actions);
    remember(observations, actions);
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    store_state(observations, exploration, 0);
    choose(observations, actions);
    epsilon_.apply(exploration, network().choices(), actions);
    remember(observations, actions);
  }
  bool has_density() const override { return epsilon_.has_density(); }
  void log_probability(const Observations& observations, const Exploration& exploration,
                       std::span<const float> actions, std::span<double> out) override {
    if (!has_density())
      return Policy::log_probability(observations, exploration, actions, out);
    std::vector<float> best(actions.size());
    choose(observations, best);
    epsilon_.log_probability(exploration, network().choices(), best, actions, out);
    remember(observations, actions);
  }
  void follow(const Observations& observations, std::span<const float> actions) override {
    std::vector<float> best(actions.size());
    choose(observations, best);
    remember(observations, actions);
  }
  void save_exploration(std::vector<std::byte>& out) const override { epsilon_.save_state(out); }
  std::span<const std::byte> load_exploration(std::span<const std::byte> in) override {
    return epsilon_.load_state(in);
  }

private:
  void choose(const Observations& observations, std::span<float> actions) {
    at::NoGradGuard no_gradient;
    const Observed x =
        seen(observations, actions).map([](const at::Tensor& one) { return one.unsqueeze(1); });
    const at::Tensor state = acting_state(observations, state_size());
    const at::Tensor memory = state.narrow(1, 0, state_size() - 1);
    const RecurrentQ::Output made =
        network().forward(leaves(), x, state.narrow(1, state_size() - 1, 1).to(at::kLong), memory);
    const at::Tensor best = best_choices(made.values.squeeze(1)).to(at::kFloat);
    memory.copy_(made.state);
    std::copy_n(best.const_data_ptr<float>(), actions.size(), actions.data());
  }
  void remember(const Observations& observations, std::span<const float> actions) const {
    const auto size = static_cast<std::size_t>(state_size());
    for (std::size_t i = 0; i < actions.size(); ++i)
      observations.state[(i + 1) * size - 1] = actions[i] + 1;
  }

  EpsilonGreedy epsilon_;
};

class R2d2 : public NetworkQLearner<R2d2Config, RecurrentQ> {
public:
  using NetworkQLearner::NetworkQLearner;

private:
  TensorMap checked(const TensorMap& batch) const override;
  Learnt backward(const TensorMap& batch) override;
  at::Tensor unrolled(const Leaves& leaves, const TensorMap& batch) const;
  at::Tensor wanted(const TensorMap& behind, const at::Tensor& values, const at::Tensor& next);
};

TensorMap R2d2::checked(const TensorMap& batch) const {
  TensorMap used = checked_sequences(batch, transitions_, updates() + 1);
  check_choices(used.at("action"), network_.choices(), updates() + 1);
  check_choices(used.at(kMemory).select(1, 0).select(1, network_.state_size() - 1),
                network_.choices() + 1, updates() + 1, kMemory);
  return used;
}

/// The values [batch, length + 1, choices] after the burn-in. The burn-in has no gradient.
at::Tensor R2d2::unrolled(const Leaves& leaves, const TensorMap& batch) const {
  const at::Tensor& first = batch.at("first");
  const at::Tensor state = batch.at(kMemory).select(1, 0); // [batch, state size]
  const at::Tensor begun = state.narrow(1, network_.state_size() - 1, 1).to(at::kLong);
  const at::Tensor chosen = batch.at("action").squeeze(2).to(at::kLong) + 1;
  const at::Tensor last =
      (at::cat({begun, chosen}, 1) * (1 - first.to(at::kLong))).to(options().device());
  const Observed seen = observed(batch, "observation", transitions_, options());
  at::Tensor memory = state.narrow(1, 0, network_.state_size() - 1).to(options());
  const std::int64_t burn_in = config_.burn_in;
  const auto part = [&](std::int64_t begin, std::int64_t rows) {
    const auto of = [&](const at::Tensor& x) { return x.narrow(1, begin, rows); };
    return network_.forward(leaves, seen.map(of), last.narrow(1, begin, rows), memory,
                            first.narrow(1, begin, rows));
  };
  if (burn_in > 0) {
    at::NoGradGuard no_gradient;
    memory = part(0, burn_in).state;
  }
  return part(burn_in, first.size(1) - burn_in).values;
}

/// The targets [batch, length], given the values of both networks, [batch, length + 1, choices].
at::Tensor R2d2::wanted(const TensorMap& behind, const at::Tensor& values, const at::Tensor& next) {
  at::NoGradGuard no_gradient;
  const at::Tensor best = next.gather(2, values.argmax(2, true)).squeeze(2);
  const at::Tensor target = sequence_targets(behind, config_.rescale ? original(best) : best,
                                             config_.n_step, transitions_.discount);
  return config_.rescale ? rescaled(target) : target;
}

R2d2::Learnt R2d2::backward(const TensorMap& batch) {
  TensorMap behind; // the steps after the burn-in
  for (const char* name : {"action", "reward", "discount", "first"}) {
    const at::Tensor& whole = batch.at(name);
    behind[name] = whole.narrow(1, config_.burn_in, whole.size(1) - config_.burn_in);
  }
  const at::Tensor next = [&] {
    const auto of_targets = span("targets");
    at::NoGradGuard no_gradient;
    return unrolled(targets(), batch);
  }();
  const at::Tensor values = unrolled(leaves(), batch);
  const at::Tensor target = wanted(behind, values, next);
  const at::Tensor action = behind.at("action").to(options().device(), at::kLong);
  const at::Tensor value = values.narrow(1, 0, config_.length).gather(2, action).squeeze(2);
  const at::Tensor counts = counting_steps(behind).to(options());
  const at::Tensor error = (value - target) * counts;
  const at::Tensor losses = error.square().mean(1) / 2;
  const at::Tensor loss =
      (batch.contains("weight") ? losses * batch.at("weight").to(options()) : losses).mean();
  loss.backward();
  const at::Tensor size = error.detach().abs();
  const at::Tensor mean = size.sum(1) / counts.sum(1).clamp_min(1);
  return {loss.detach(), value.detach().mean(),
          config_.largest_share * size.amax(1) + (1 - config_.largest_share) * mean};
}

Members members(R2d2Config& config) {
  Members made{{"layers", &config.layers},
               {"encoder", &config.encoder},
               {"lstm", &config.lstm},
               {"burn_in", &config.burn_in},
               {"length", &config.length},
               {"period", &config.period},
               {"n_step", &config.n_step},
               {"rescale", &config.rescale},
               {"largest_share", &config.largest_share},
               {"learning_rate", &config.learning_rate},
               {"adam_epsilon", &config.adam_epsilon},
               {"target_period", &config.target_period},
               {"gradient_norm", &config.gradient_norm},
               {"precision", &config.precision},
               {"batch_size", &config.batch_size}};
  config.epsilon.add_members(made);
  return made;
}

std::vector<OptionProblem> problems(const R2d2Config& config, const AgentSetting& setting) {
  std::vector<OptionProblem> found = small_pictures("r2d2", config.encoder, setting);
  if (config.period > config.length)
    found.push_back({"period", "is " + std::to_string(config.period)
                                   + "; it must be at most r2d2.length, "
                                   + std::to_string(config.length)
                                   + ": the steps in between would never be learnt"});
  return found;
}

} // namespace

at::Tensor sequence_targets(const TensorMap& batch, const at::Tensor& values, int n_step,
                            double discount) {
  const std::int64_t steps = values.size(1) - 1;
  const at::Tensor reward = batch.at("reward").to(values.options());
  const at::Tensor kept = batch.at("discount").to(values.options()) * discount;
  const at::Tensor ends = batch.at("first").narrow(1, 1, steps).to(values.device(), at::kBool);
  const at::Tensor here = values.narrow(1, 0, steps);
  const at::Tensor last = values.narrow(1, steps, 1);
  at::Tensor sums = values;
  for (int k = 0; k < n_step; ++k)
    sums = at::cat({at::where(ends, here, reward + kept * sums.narrow(1, 1, steps)), last}, 1);
  return sums.narrow(1, 0, steps);
}

/// Replay stores overlapping sequences with the recurrent state.
Storage storage_of(const R2d2Config& config) {
  return {.sequence_steps = config.burn_in + config.length,
          .sequence_period = config.period,
          .extras = {{kMemory, env::ElementType::float32, {2 * config.lstm + 1}}}};
}

AgentPtr make_r2d2_agent(const R2d2Config& config) {
  return std::make_shared<const ConfiguredAgent<R2d2Config, R2d2, R2d2Policy>>(config);
}

AgentKind r2d2_agent() {
  return agent_kind<R2d2Config>({.name = "r2d2",
                                 .help = "Q-learning with a memory, from sequences (Kapturowski et "
                                         "al. 2019)",
                                 .pixels = true,
                                 .both = true,
                                 .actions = ActionKind::choice,
                                 .recurrent = true,
                                 .metrics = {"critic_loss", "q_mean", "gradient_norm"},
                                 .options = agents::R2d2::descriptor()},
                                members, problems, make_r2d2_agent);
}

} // namespace troupe::learner
