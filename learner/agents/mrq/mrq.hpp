#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/action_noise.hpp"
#include "learner/agents/predictive/predictive_shape.hpp"

namespace troupe::learner {

/// MR.Q (Fujimoto et al. 2025) with the changes of DR.Q: a deterministic actor-critic with twin
/// critics on learned features. The features are trained by a model of the environment that
/// predicts the next features and the reward, unrolled over a few steps. The same configuration
/// works for states and pixels. For continuous actions. The agent learns from sequences, with the
/// priorities of LAP (Fujimoto et al. 2020): an error below 1 counts as 1, and
/// replay.priority_exponent is the exponent.
///
/// An update trains the encoder, then the critics, then the policy, all on one batch. Critics and
/// policy use an encoder that is fixed for `period` updates. It then becomes the encoder of the
/// target values, the trained encoder replaces it, and the targets of critics and policy are
/// replaced by copies. The original trains the encoder `period` times in a row at that moment. Here
/// the batches of these updates are up to `period` agent steps older, and every update does the
/// same work.
struct MrqConfig {
  PredictiveConfig features{};
  std::vector<std::int64_t> policy_layers = {512, 512};
  std::vector<std::int64_t> critic_layers = {512, 512, 512};
  int n_step = 3; // steps of the return
  int period = 250;
  double encoder_learning_rate = 3e-4;
  double policy_learning_rate = 3e-4;
  double critic_learning_rate = 3e-4;
  double weight_decay = 1e-2;      // decoupled, for all networks
  double gradient_norm = 0;        // limit for the critics; 0: no clipping; MR.Q: 20
  double preactivation_weight = 0; // MR.Q: 1e-5
  bool scale_rewards = false;      // values are in units of the mean absolute reward; MR.Q: true
  double target_noise = 0.2;       // in units of the action range [-1, 1]
  double target_noise_clip = 0.3;
  std::string precision =
      "auto"; // of products: "float32", "bfloat16" or "auto"; "float64": of everything
  std::int64_t batch_size = 256; // over all replicas
  ActionNoiseConfig noise{.scale = {{.start = 0.2, .end = 0.2}}};
};

/// Makes the agent, which learns from replay batches of sequences
/// (learner/agents/parts/transition_batch.hpp).
/// Metrics: "critic_loss", "policy_loss", "q_mean" (in units of "reward_scale"), "reward_scale"
/// (the mean absolute reward, or 1), "encoder_loss" and its parts "dynamics_loss", "reward_loss",
/// "termination_loss" and "contrast_loss", and "gradient_norm" of the critics. Throws
/// std::runtime_error naming the tensor and its origin on NaN or infinity.
AgentPtr make_mrq_agent(const MrqConfig& config);

} // namespace troupe::learner
