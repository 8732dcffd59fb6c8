#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

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
  std::string precision = "float32"; // "float64": for tests
  std::int64_t batch_size = 256;     // global, over all replicas
  BlocksConfig blocks{};
};

/// Takes the batches that replay gives (learner/agents/parts/transition_batch.hpp). Metrics:
/// "critic_loss", "policy_loss", "q_mean", "entropy" (minus the mean log probability),
/// "temperature", "gradient_norm". Throws std::runtime_error naming the tensor and its origin on a
/// NaN or infinity.
AgentPtr make_sac_agent(const SacConfig& config);

/// Gaussian actions squashed by tanh.
struct SquashedSample {
  at::Tensor action;          // [batch, action size]
  at::Tensor log_probability; // [batch]
};

/// raw: [batch, 2 * action size], means and logarithms of standard deviations; noise: standard
/// normal, [batch, action size].
SquashedSample squashed_sample(const at::Tensor& raw, const at::Tensor& noise);

/// The derivative of temperature * log_probability - value, summed over the rows and times `share`,
/// with respect to raw; action_gradient: that of the value * share with respect to the action.
at::Tensor squashed_gradient(const at::Tensor& raw, const at::Tensor& noise,
                             const at::Tensor& action, const at::Tensor& action_gradient,
                             double temperature, double share);

} // namespace troupe::learner
