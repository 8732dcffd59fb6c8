#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// Behaviour cloning: a policy that is likely to do what was recorded. Continuous actions and
/// choices, from states or pixels.
struct BcConfig {
  std::vector<std::int64_t> layers = {256, 256};
  std::string encoder = "nature";
  double learning_rate = 1e-3;
  double gradient_norm = 0;
  std::string precision = "float32"; // "float64": for tests
  std::int64_t batch_size = 256;     // global, over all replicas
};

/// Takes the batches that replay gives. Metrics: "loss" (the negative logarithm of the recorded
/// actions' probability, where continuous numbers have deviation 1), "gradient_norm".
AgentPtr make_bc_agent(const BcConfig& config);

} // namespace troupe::learner
