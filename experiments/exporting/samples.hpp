#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "env/environment_config.hpp"
#include "experiments/exporting/contract.hpp"
#include "learner/acting/policy.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "learner/policy_graph/weight_type.hpp"

namespace troupe::experiments {

/// Limit for the difference between a policy's actions and those of its layers, before they are
/// scaled to the environment's bounds.
inline constexpr double kLargestDifference = 1e-4;

/// Observations of consecutive steps as the environment provides them, before normalisation, and
/// the trained policy's actions for them, within the environment's bounds.
struct PolicySamples {
  std::int64_t count = 0;
  std::vector<std::byte> frames;   // [count] times the first array with its whole history
  std::vector<float> vectors;      // [count, numbers]; the other arrays
  std::vector<std::uint8_t> first; // 1 at the first step of an episode, where a memory is cleared
  std::vector<float> actions;      // [count, action size]
  /// The graph's actions with rounded weights, [count, action size]; empty for float32 weights.
  std::vector<float> rounded = {};
  double largest_difference = 0; // between the policy's actions and the graph's, before scaling
};

/// Plays the policy without exploration, and its graph on the same observations, also with weights
/// of type `weights`. Observations where a choice is almost tied (GraphRunner::choice_margin()) are
/// left out, up to `count` of them: there, rounding decides. A policy with a memory begins the next
/// episode after such an observation. Throws std::runtime_error if an action of the policy and one
/// of its graph differ by more than kLargestDifference.
PolicySamples record_samples(const env::EnvironmentConfig& config, const PolicyContract& contract,
                             learner::Policy& policy, const learner::PolicyGraph& graph,
                             learner::WeightType weights, std::uint64_t seed, std::int64_t count);

/// The mean return of episodes played by the graph.
double graph_return(const env::EnvironmentConfig& config, const learner::PolicyGraph& graph,
                    std::uint64_t seed, int episodes);

} // namespace troupe::experiments
