#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/learners/actor_critic_learner.hpp"

namespace troupe::learner {

/// IMPALA (Espeholt et al. 2018): many actors act with parameters that are some updates old, and
/// V-trace corrects for it. Continuous actions and choices, from states or pixels.
struct ImpalaConfig {
  std::vector<std::int64_t> layers = {64, 64};
  std::string encoder = "minatar";
  std::int64_t lstm = 0;        // cells of a memory; 0: none
  std::int64_t rollout = 20;    // steps of an item
  std::int64_t batch_size = 32; // items of an update, over all replicas
  double learning_rate = 6e-4;
  double most_weight = 1; // of importance weights, in the value and in the policy's gradient
  double most_trace = 1;  // of the weights that carry errors back
  double lambda = 1;
  double entropy = 0.01;
  double value_weight = 0.5;
  double gradient_norm = 40;
  double reward_scale = 1;
  bool normalise_advantages = false;
  std::string precision = "float32"; // "float64": for tests
};

/// Takes the batches of sequences that replay gives (learner/agents/parts/transition_batch.hpp).
/// Metrics: "policy_loss", "value_loss", "entropy", "weight" (mean importance weight, clipped),
/// "gradient_norm", "sample_age". Throws std::runtime_error naming the tensor and its origin on
/// a NaN or infinity.
AgentPtr make_impala_agent(const ImpalaConfig& config);

} // namespace troupe::learner
