#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/blocks_config.hpp"
#include "learner/agents/parts/action_noise.hpp"

namespace troupe::learner {

/// Distributed distributional DDPG (Barth-Maron et al. 2018) from states or pixels. The observation
/// decides: uint8 [channels, height, width] gets the convolutional encoder, float32 [n] goes
/// straight to the heads.
struct D4pgConfig {
  std::vector<std::int64_t> policy_layers = {256, 256, 256};
  std::vector<std::int64_t> critic_layers = {256, 256, 256};
  bool layer_norm =
      true; // first layer: linear, LayerNorm, tanh; the others ELU (states) or ReLU (pixels)
  int atoms = 51;
  double value_minimum = 0;
  double value_maximum = 100;
  double policy_learning_rate = 3e-4;
  double critic_learning_rate = 3e-4; // and the encoder's
  double target_update =
      0.01; // exponential average per update; 1 with target_period > 1: hard copies
  int target_period = 1;
  double gradient_norm = 0;        // clip the global norm of the gradients; 0: off
  double action_gradient_norm = 0; // clip |dQ/da| per sample; 0: off
  double saturation_penalty = 1;   // weight of mean(relu(|pre_tanh| - 1.5)^2)
  double reward_scale = 1;
  // pixels
  std::string encoder = "stride4"; // "stride4": 4x4/4, 3x3/2, 3x3/2; "drq": 3x3/2, then three 3x3/1
  int encoder_channels = 32;
  int feature_size =
      50;               // linear, LayerNorm, tanh behind the encoder, one each in policy and critic
  int shift_pixels = 4; // random shift with replicated borders; 0: off
  std::string precision =
      "auto"; // "float32", "bfloat16"; "auto": of convolutions, as make_encoder(); "float64"
  std::int64_t batch_size = 256; // global, over all replicas
  BlocksConfig blocks{};         // they replace layer_norm
  ActionNoiseConfig noise{.scale = {{.start = 0.2, .end = 0.2}}};
};

/// Names in a batch of its replica: "observation", "action", "reward", "discount",
/// "next_observation" as in replay::BatchView, dense, on the CPU; the caller brings them (input_fn
/// has none) and keeps them unchanged during step_fn. With a tensor "weight" [batch], float32, row
/// i counts weight[i] times in the critic's loss (not in the policy's), and priorities() are the
/// rows' cross entropies. Metrics: "critic_loss", "policy_loss", "q_mean", "saturation" (share of
/// |a| > 0.95), "gradient_norm". Throws std::runtime_error naming the tensor and its origin on a
/// NaN or infinity in batch, loss or gradient.
AgentPtr make_d4pg_agent(const D4pgConfig& config);

} // namespace troupe::learner
