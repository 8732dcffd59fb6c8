#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// Behaviour cloning: trains a policy to imitate recorded actions. For continuous actions and
/// choices, from states or pixels.
struct BcConfig {
  std::vector<std::int64_t> layers = {256, 256};
  std::string encoder = "nature";
  double learning_rate = 1e-3;
  double gradient_norm = 0;
  std::string precision = "float32"; // "float64": for tests
  std::int64_t batch_size = 256;     // over all replicas
};

/// Makes the agent, which learns from replay batches. Metrics: "loss" (the negative log-probability
/// of the recorded actions, with standard deviation 1 for continuous components) and
/// "gradient_norm".
AgentPtr make_bc_agent(const BcConfig& config);

} // namespace troupe::learner
