#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/blocks_config.hpp"
#include "learner/agents/parts/action_noise.hpp"

namespace troupe::learner {

/// Distributed distributional DDPG (Barth-Maron et al. 2018) from states or pixels, depending on
/// the observation. uint8 [channels, height, width] is processed by the convolutional encoder;
/// float32 [n] is the direct input of policy and critic.
struct D4pgConfig {
  std::vector<std::int64_t> policy_layers = {256, 256, 256};
  std::vector<std::int64_t> critic_layers = {256, 256, 256};
  bool layer_norm = true; // first layer: linear, LayerNorm, tanh; others: ELU or, for pixels, ReLU
  int atoms = 51;
  double value_minimum = 0;
  double value_maximum = 100;
  double policy_learning_rate = 3e-4;
  double critic_learning_rate = 3e-4; // also for the encoder
  /// Weight of the exponential average in each update. For hard copies, set it to 1 and
  /// target_period above 1.
  double target_update = 0.01;
  int target_period = 1;
  double gradient_norm = 0;        // limit of the global norm of the gradients; 0: no clipping
  double action_gradient_norm = 0; // limit of |dQ/da| per sample; 0: no clipping
  double saturation_penalty = 1;   // weight of mean(relu(|pre_tanh| - 1.5)^2)
  double reward_scale = 1;
  // Only for pixels:
  std::string encoder = "stride4"; // "stride4": 4x4/4, 3x3/2, 3x3/2; "drq": 3x3/2, then three 3x3/1
  int encoder_channels = 32;
  int feature_size = 50; // outputs of the trunks of policy and critic: linear, LayerNorm, tanh
  int shift_pixels = 4;  // maximum random shift, with replicated borders; 0: none

  /// "float32", "bfloat16", "float64", or "auto", which applies only to convolutions: see
  /// make_encoder().
  std::string precision = "auto";
  std::int64_t batch_size = 256; // over all replicas
  BlocksConfig blocks{};         // replace layer_norm
  ActionNoiseConfig noise{.scale = {{.start = 0.2, .end = 0.2}}};
};

/// Makes the agent. Batches of its replica contain "observation", "action", "reward", "discount"
/// and "next_observation" as in replay::BatchView, dense and on the CPU. The caller provides them
/// (input_fn returns none) and must not change them during step_fn. With an optional float32 tensor
/// "weight" [batch], row i counts weight[i] times in the critic's loss (not in the policy's), and
/// priorities() returns the cross entropies of the rows.
/// Metrics: "critic_loss", "policy_loss", "q_mean", "saturation" (fraction of |a| > 0.95),
/// "gradient_norm". Throws std::runtime_error naming the tensor and its origin if the batch, a loss
/// or a gradient contains NaN or infinity.
AgentPtr make_d4pg_agent(const D4pgConfig& config);

} // namespace troupe::learner
