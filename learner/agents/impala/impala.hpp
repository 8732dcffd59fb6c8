#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/learners/actor_critic_learner.hpp"

namespace troupe::learner {

/// IMPALA (Espeholt et al. 2018): actors use parameters that are a few updates old, and V-trace
/// corrects for the difference. For continuous actions and choices, from states or pixels.
struct ImpalaConfig {
  std::vector<std::int64_t> layers = {64, 64};
  std::string encoder = "minatar";
  std::int64_t lstm = 0;        // LSTM cells; 0: no memory
  std::int64_t rollout = 20;    // steps per item
  std::int64_t batch_size = 32; // items per update, over all replicas
  std::int64_t item_uses = 1;   // updates that use each item
  double learning_rate = 6e-4;
  double most_weight = 1; // limit of the importance weights, for values and policy gradient
  double most_trace = 1;  // limit of the weights that propagate errors to earlier steps
  double lambda = 1;
  EntropyConfig entropy{};
  double value_weight = 0.5;
  double gradient_norm = 40;
  double reward_scale = 1;
  bool normalise_advantages = false;
  std::string precision = "float32"; // "float64": for tests
};

/// Makes the agent, which learns from replay batches of sequences
/// (learner/agents/parts/transition_batch.hpp). Metrics: "policy_loss", "value_loss", "entropy",
/// "weight" (mean clipped importance weight), "gradient_norm", "sample_age". Throws
/// std::runtime_error naming the tensor and its origin on NaN or infinity.
AgentPtr make_impala_agent(const ImpalaConfig& config);

} // namespace troupe::learner
