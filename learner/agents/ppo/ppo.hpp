#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/learners/actor_critic_learner.hpp"

namespace troupe::learner {

/// Proximal policy optimisation (Schulman et al. 2017) with a clipped ratio and generalised
/// advantages. For continuous actions and choices, from states or pixels.
struct PpoConfig {
  std::vector<std::int64_t> layers = {64, 64};
  std::string encoder = "minatar";
  std::int64_t lstm = 0;       // LSTM cells; 0: no memory
  std::int64_t rollout = 128;  // steps per item
  std::int64_t batch_size = 8; // items per update, over all replicas
  int epochs = 4;              // passes over the steps of a batch
  int minibatches = 4;         // per epoch
  double learning_rate = 2.5e-4;
  double adam_epsilon = 1e-5;
  double clip = 0.2;
  double lambda = 0.95;
  EntropyConfig entropy{};
  double value_weight = 0.5;
  double gradient_norm = 0.5;
  bool normalise_advantages = true;  // in each minibatch
  std::string precision = "float32"; // "float64": for tests
};

/// Makes the agent, which learns from replay batches of sequences
/// (learner/agents/parts/transition_batch.hpp). Metrics: "policy_loss", "value_loss", "entropy",
/// "divergence" (between the acting and the new policy), "clipped" (fraction of clipped ratios),
/// "gradient_norm", "sample_age" (updates since the actions were chosen). Throws std::runtime_error
/// naming the tensor and its origin on NaN or infinity.
AgentPtr make_ppo_agent(const PpoConfig& config);

} // namespace troupe::learner
