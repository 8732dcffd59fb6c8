#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/blocks_config.hpp"

namespace troupe::learner {

/// Soft actor-critic with automatic temperature (Haarnoja et al. 2018, "Algorithms and
/// Applications"), from states.
struct SacConfig {
  std::vector<std::int64_t> policy_layers = {256, 256};
  std::vector<std::int64_t> critic_layers = {256, 256};
  double policy_learning_rate = 3e-4;
  double critic_learning_rate = 3e-4;
  double temperature_learning_rate = 3e-4;
  double temperature = 1;
  double target_entropy = -1; // times the dimensions of the action
  double target_update = 0.005;
  double gradient_norm = 0;
  std::string precision = "auto"; // of products; "float64": of everything
  std::int64_t batch_size = 256;  // over all replicas
  BlocksConfig blocks{};
  /// SimbaV2 (Lee et al. 2025): networks of spherical blocks (nn/spherical_network.hpp), a
  /// categorical critic, and rewards scaled so that returns are within its atoms.
  bool spherical = false;
  int critics = 1;          // spherical: 1, or 2 of which the smaller value counts
  std::int64_t atoms = 101; // spherical: atoms of the critics
};

/// What the agent stores: with `spherical` also running returns.
Storage storage_of(const SacConfig& config);

/// Makes the agent, which learns from replay batches (learner/agents/parts/transition_batch.hpp).
/// Metrics: "critic_loss", "policy_loss", "q_mean", "entropy" (the negative mean log-probability),
/// "temperature", "gradient_norm". Throws std::runtime_error naming the tensor and its origin on
/// NaN or infinity.
AgentPtr make_sac_agent(const SacConfig& config);

} // namespace troupe::learner
