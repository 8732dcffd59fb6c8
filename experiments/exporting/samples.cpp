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

constexpr double kLargestDifference = 1e-4;

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

private:
  learner::GraphRunner runner_;
  const env::EnvironmentSpec& spec_;
  std::vector<float> vectors_;
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
                             std::uint64_t seed, std::int64_t count) {
  env::EnvironmentConfig raw = config;
  raw.normalization = {};
  const auto environment = env::make_environment(raw);
  const env::EnvironmentSpec& spec = environment->spec();
  GraphPolicy described(graph, spec);
  std::vector<std::byte> observation(spec.observation_bytes());
  std::vector<std::byte> normalised;
  std::vector<float> chosen(spec.action.size());
  std::vector<float> same(chosen.size());
  std::vector<double> action(chosen.size());
  std::vector<float> state(static_cast<std::size_t>(policy.state_size()));
  std::vector<float> same_state(state.size());
  PolicySamples made{.count = count, .frames = {}, .vectors = {}, .first = {}, .actions = {}};
  env::TimeStep step{.step_type = env::StepType::last};
  for (std::uint64_t episode = 0; static_cast<std::int64_t>(made.first.size()) < count;) {
    const bool begins = step.step_type == env::StepType::last;
    if (begins) {
      step = environment->reset(learner::split_seed(seed, {episode++}), observation);
      std::fill(state.begin(), state.end(), 0.F);
      std::fill(same_state.begin(), same_state.end(), 0.F);
    }
    append(spec, observation, made);
    made.first.push_back(begins ? 1 : 0);
    normalised = observation;
    normalise(contract, spec, normalised);
    policy.act(normalised, 1, chosen, state);
    described.act(normalised, 1, same, same_state);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const bool choice = contract.actions[i].choices > 0;
      const double given = choice ? chosen[i] : contract.scales[i](chosen[i]);
      made.actions.push_back(static_cast<float>(given));
      made.largest_difference =
          std::max(made.largest_difference, std::abs(static_cast<double>(chosen[i]) - same[i]));
      action[i] = chosen[i];
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
