#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/exploration.hpp"

namespace troupe::learner {

/// Deep Q-learning (Mnih et al. 2015) with the components of Rainbow (Hessel et al. 2018) as
/// options. Replay computes n-step returns and priorities. One choice per step, from states or
/// pixels.
struct DqnConfig {
  std::vector<std::int64_t> layers = {256, 256};
  std::string encoder = "minatar";
  bool double_q = true;
  bool dueling = false;
  bool noisy = false;
  int atoms = 1;
  double value_minimum = 0;
  double value_maximum = 100;
  double learning_rate = 3e-4;
  double adam_epsilon = 1e-8;
  int target_period = 500;
  double gradient_norm = 10;
  EpsilonConfig epsilon{};
  std::string precision = "float32"; // "float64": for tests
  std::int64_t batch_size = 64;      // over all replicas
};

/// Makes the agent, which learns from replay batches (learner/agents/parts/transition_batch.hpp).
/// Metrics: "critic_loss" (Huber, or cross entropy with atoms), "q_mean", "gradient_norm". Throws
/// std::runtime_error naming the tensor and its origin on NaN or infinity.
AgentPtr make_dqn_agent(const DqnConfig& config);

} // namespace troupe::learner
