#include "experiments/exporting/samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "env/make/make.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/evaluation.hpp"
#include "learner/policy_graph/graph_runner.hpp"

namespace troupe::experiments {
namespace {

constexpr double kTie = 1e-4; // of GraphRunner::choice_margin()

/// A policy that acts with a graph.
class GraphPolicy : public learner::Policy {
public:
  GraphPolicy(const learner::PolicyGraph& graph, const env::EnvironmentSpec& spec)
      : runner_(graph), spec_(spec) {}

  std::int64_t parameter_count() const override { return 0; }
  std::int64_t state_size() const override { return runner_.graph().state_size(); }
  void load(std::span<const float>) override {}
  using Policy::act;
  /// Acts on one complete observation as the environment writes it.
  void act(const learner::Observations& observations, std::span<float> actions) override {
    const std::byte* whole = observations.frames[0];
    vectors_.clear();
    for (std::size_t i = 1; i < spec_.observations.size(); ++i) {
      const std::size_t before = vectors_.size();
      vectors_.resize(before + spec_.observations[i].elements());
      std::memcpy(vectors_.data() + before, whole + spec_.observation_offset(i),
                  spec_.observations[i].bytes());
    }
    runner_.act({whole, spec_.observations[0].bytes()}, vectors_, observations.state, actions);
  }
  /// Whether a choice of the most recent act() was almost tied.
  bool tied() const { return runner_.choice_margin() < kTie; }

private:
  learner::GraphRunner runner_;
  const env::EnvironmentSpec& spec_;
  std::vector<float> vectors_;
};

/// A policy's action and memory while it plays.
struct Played {
  Played(const learner::Policy& policy, std::size_t size)
      : action(size), state(static_cast<std::size_t>(policy.state_size())) {}

  std::vector<float> action;
  std::vector<float> state;
};

void append(const env::EnvironmentSpec& spec, std::span<const std::byte> observation,
            PolicySamples& samples) {
  const auto frames = observation.first(spec.observations[0].bytes());
  samples.frames.insert(samples.frames.end(), frames.begin(), frames.end());
  for (std::size_t i = 1; i < spec.observations.size(); ++i) {
    const std::size_t before = samples.vectors.size();
    samples.vectors.resize(before + spec.observations[i].elements());
    std::memcpy(samples.vectors.data() + before, observation.data() + spec.observation_offset(i),
                spec.observations[i].bytes());
  }
}

} // namespace

PolicySamples record_samples(const env::EnvironmentConfig& config, const PolicyContract& contract,
                             learner::Policy& policy, const learner::PolicyGraph& graph,
                             learner::WeightType weights, std::uint64_t seed, std::int64_t count) {
  env::EnvironmentConfig raw = config;
  raw.normalization = {};
  const auto environment = env::make_environment(raw);
  const env::EnvironmentSpec& spec = environment->spec();
  GraphPolicy described(graph, spec);
  const bool rounds = weights != learner::WeightType::float32;
  GraphPolicy rounded(learner::with_weights(graph, weights), spec);
  std::vector<std::byte> observation(spec.observation_bytes());
  std::vector<std::byte> normalised;
  const std::size_t size = spec.action.size();
  Played chosen(policy, size);
  Played same(policy, size);
  Played near(policy, size); // with rounded weights
  const auto given = [&](float number, std::size_t i) {
    return static_cast<float>(contract.actions[i].choices > 0 ? number
                                                              : contract.scales[i](number));
  };
  PolicySamples made{.count = count, .frames = {}, .vectors = {}, .first = {}, .actions = {}};
  std::int64_t left_out = 0;
  env::TimeStep step{.step_type = env::StepType::last};
  for (std::uint64_t episode = 0; static_cast<std::int64_t>(made.first.size()) < count;) {
    const bool begins = step.step_type == env::StepType::last;
    if (begins) {
      step = environment->reset(learner::split_seed(seed, {episode++}), observation);
      for (Played* one : {&chosen, &same, &near})
        std::fill(one->state.begin(), one->state.end(), 0.F);
    }
    normalised = observation;
    normalise(contract, spec, normalised);
    policy.act(normalised, 1, chosen.action, chosen.state);
    described.act(normalised, 1, same.action, same.state);
    if (rounds)
      rounded.act(normalised, 1, near.action, near.state);
    const std::vector<double> action(chosen.action.begin(), chosen.action.end());
    const bool tied = described.tied() || (rounds && rounded.tied());
    if (tied && left_out < count) {
      ++left_out;
      if (chosen.state.empty())
        step = environment->step(action, observation);
      else // its memory would contain the choice
        step.step_type = env::StepType::last;
      continue;
    }
    append(spec, observation, made);
    made.first.push_back(begins ? 1 : 0);
    for (std::size_t i = 0; i < size; ++i) {
      made.actions.push_back(given(chosen.action[i], i));
      if (rounds)
        made.rounded.push_back(given(near.action[i], i));
      if (!tied || contract.actions[i].choices == 0)
        made.largest_difference =
            std::max(made.largest_difference,
                     std::abs(static_cast<double>(chosen.action[i]) - same.action[i]));
    }
    if (made.largest_difference > kLargestDifference)
      throw std::runtime_error(
          "the policy and its layers differ by " + std::to_string(made.largest_difference)
          + " at step " + std::to_string(made.first.size() - 1)
          + "; the agent's Policy::graph() does not describe what its act() does");
    step = environment->step(action, observation);
  }
  return made;
}

double graph_return(const env::EnvironmentConfig& config, const learner::PolicyGraph& graph,
                    std::uint64_t seed, int episodes) {
  const auto environment = env::make_environment(config);
  GraphPolicy policy(graph, environment->spec());
  double total = 0;
  for (int episode = 0; episode < episodes; ++episode)
    total += learner::play_episode(
        *environment, policy, learner::split_seed(seed, {static_cast<std::uint64_t>(episode)}));
  return total / episodes;
}

} // namespace troupe::experiments
