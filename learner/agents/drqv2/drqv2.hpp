#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/exploration.hpp"

namespace troupe::learner {

/// DrQ-v2 (Yarats et al. 2021): DDPG with two critics and one encoder, from pixels with random
/// shifts by whole pixels, as in the authors' program. Replay computes n-step returns.
struct Drqv2Config {
  std::vector<std::int64_t> policy_layers = {1024, 1024};
  std::vector<std::int64_t> critic_layers = {1024, 1024};
  std::string encoder = "drq"; // see EncoderShape
  int encoder_channels = 32;
  int feature_size = 50; // outputs of the trunks of policy and critics: linear, LayerNorm, tanh
  int shift_pixels = 4;
  double policy_learning_rate = 1e-4;
  double critic_learning_rate = 1e-4; // also for the encoder
  double target_update = 0.01;
  double noise_clip = 0.3; // limit of the noise in updates
  NoiseConfig noise{{.start = 1.0, .end = 0.1, .steps = 100'000}};
  double steps_per_update = 2; // agent steps per update, for the schedule of the noise
  double gradient_norm = 0;
  /// "float32", "bfloat16", "float64", or "auto", which applies only to convolutions: see
  /// make_encoder().
  std::string precision = "auto";
  std::int64_t batch_size = 256; // over all replicas
};

/// Makes the agent, which learns from replay batches (learner/agents/parts/transition_batch.hpp).
/// Only the critics' loss trains the encoder. An update steps the critics, then the policy against
/// the new critics, then the target critics. The noise of the policy's actions in updates follows
/// the exploration schedule, by the number of updates.
/// Metrics: "critic_loss", "policy_loss", "q_mean", "gradient_norm". Throws std::runtime_error
/// naming the tensor and its origin on NaN or infinity.
AgentPtr make_drqv2_agent(const Drqv2Config& config);

} // namespace troupe::learner
