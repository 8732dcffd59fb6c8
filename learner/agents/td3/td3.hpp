#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/blocks_config.hpp"
#include "learner/agents/parts/action_noise.hpp"

namespace troupe::learner {

/// Twin delayed deep deterministic policy gradient (Fujimoto, van Hoof and Meger 2018), from
/// states.
struct Td3Config {
  std::vector<std::int64_t> policy_layers = {256, 256};
  std::vector<std::int64_t> critic_layers = {256, 256};
  double policy_learning_rate = 3e-4;
  double critic_learning_rate = 3e-4;
  double target_update = 0.005;
  int policy_period = 2;
  double target_noise = 0.2; // in units of the action range [-1, 1]
  double target_noise_clip = 0.5;
  double imitation = 0; // TD3+BC's alpha; 0: off
  double gradient_norm = 0;
  std::string precision = "auto"; // of products; "float64": of everything
  std::int64_t batch_size = 256;  // over all replicas
  BlocksConfig blocks{};
  ActionNoiseConfig noise{.scale = {{.start = 0.1, .end = 0.1}}};
};

/// Makes the agent, which learns from replay batches (learner/agents/parts/transition_batch.hpp).
/// Metrics: "critic_loss", "policy_loss" (of the policy's last update), "q_mean", "gradient_norm".
/// Throws std::runtime_error naming the tensor and its origin on NaN or infinity.
AgentPtr make_td3_agent(const Td3Config& config);

} // namespace troupe::learner
