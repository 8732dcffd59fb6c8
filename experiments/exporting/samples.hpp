#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "env/environment_config.hpp"
#include "experiments/exporting/contract.hpp"
#include "learner/acting/policy.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::experiments {

/// Observations of consecutive steps as the environment provides them, before normalisation, and
/// the trained policy's actions for them, within the environment's bounds.
struct PolicySamples {
  std::int64_t count = 0;
  std::vector<std::byte> frames;   // [count] times the first array with its whole history
  std::vector<float> vectors;      // [count, numbers]; the other arrays
  std::vector<std::uint8_t> first; // 1 at the first step of an episode, where a memory is cleared
  std::vector<float> actions;      // [count, action size]
  double largest_difference = 0;   // between these actions and the graph's
};

/// Plays the policy without exploration, and its graph on the same observations. Throws
/// std::runtime_error if their actions differ by more than 1e-4 of the action's range.
PolicySamples record_samples(const env::EnvironmentConfig& config, const PolicyContract& contract,
                             learner::Policy& policy, const learner::PolicyGraph& graph,
                             std::uint64_t seed, std::int64_t count);

/// The mean return of episodes played by the graph.
double graph_return(const env::EnvironmentConfig& config, const learner::PolicyGraph& graph,
                    std::uint64_t seed, int episodes);

} // namespace troupe::experiments
