#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/exploration.hpp"

namespace troupe::learner {

/// DrQ-v2 (Yarats et al. 2021): DDPG with two critics and one encoder, from pixels that are shifted
/// at random by whole pixels, as in the authors' program. n-step returns are the replay's.
struct Drqv2Config {
  std::vector<std::int64_t> policy_layers = {1024, 1024};
  std::vector<std::int64_t> critic_layers = {1024, 1024};
  std::string encoder = "drq"; // of EncoderShape
  int encoder_channels = 32;
  int feature_size = 50; // of the trunks: linear, LayerNorm, tanh; one each for policy and critics
  int shift_pixels = 4;
  double policy_learning_rate = 1e-4;
  double critic_learning_rate = 1e-4; // and the encoder's
  double target_update = 0.01;
  double noise_clip = 0.3; // in updates
  NoiseConfig noise{{.start = 1.0, .end = 0.1, .steps = 100'000}};
  double steps_per_update = 8; // agent steps in an update's time, by which the noise falls
  double gradient_norm = 0;
  std::string precision =
      "auto"; // "float32", "bfloat16"; "auto": of convolutions, as make_encoder(); "float64"
  std::int64_t batch_size = 256; // global, over all replicas
};

/// Takes the batches that replay gives (learner/agents/parts/transition_batch.hpp). The critics'
/// loss alone trains the encoder. An update computes the critics, then the policy against the new
/// critics, then the target critics; the noise of its actions falls as that of exploration, by the
/// number of updates. Metrics: "critic_loss", "policy_loss", "q_mean", "gradient_norm". Throws
/// std::runtime_error naming the tensor and its origin on a NaN or infinity.
AgentPtr make_drqv2_agent(const Drqv2Config& config);

} // namespace troupe::learner
