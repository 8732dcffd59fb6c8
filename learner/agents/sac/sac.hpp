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
  std::string precision = "float32"; // of products: or "bfloat16"; "float64": everything
  std::int64_t batch_size = 256;     // global, over all replicas
  BlocksConfig blocks{};
  /// SimbaV2 (Lee et al. 2025): networks of spherical blocks (nn/spherical_network.hpp), a
  /// categorical critic, rewards in units in which returns lie within its atoms.
  bool spherical = false;
  int critics = 1;          // of spherical: 1, or 2 of which the smaller one counts
  std::int64_t atoms = 101; // of spherical
};

/// Takes the batches that replay gives (learner/agents/parts/transition_batch.hpp). Metrics:
/// "critic_loss", "policy_loss", "q_mean", "entropy" (minus the mean log probability),
/// "temperature", "gradient_norm". Throws std::runtime_error naming the tensor and its origin on a
/// NaN or infinity.
AgentPtr make_sac_agent(const SacConfig& config);

} // namespace troupe::learner
