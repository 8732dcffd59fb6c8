#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "env/environment_config.hpp"
#include "experiments/exporting/contract.hpp"
#include "learner/acting/policy.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::experiments {

/// Observations of consecutive steps as the environment gives them, before normalisation, and the
/// actions that the trained policy takes there, in the environment's bounds.
struct PolicySamples {
  std::int64_t count = 0;
  std::vector<std::byte> frames;   // [count] of the first array, its whole history
  std::vector<float> vectors;      // [count, numbers] of the other arrays
  std::vector<std::uint8_t> first; // 1: of its episode, where a memory is cleared
  std::vector<float> actions;      // [count, action size]
  double largest_difference = 0;   // of the graph's actions from these
};

/// Plays the policy without exploration, and its graph beside it. Throws std::runtime_error if
/// their actions differ by more than 1e-4 of the action's range.
PolicySamples record_samples(const env::EnvironmentConfig& config, const PolicyContract& contract,
                             learner::Policy& policy, const learner::PolicyGraph& graph,
                             std::uint64_t seed, std::int64_t count);

/// The mean return of episodes that the graph plays.
double graph_return(const env::EnvironmentConfig& config, const learner::PolicyGraph& graph,
                    std::uint64_t seed, int episodes);

} // namespace troupe::experiments
