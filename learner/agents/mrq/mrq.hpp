#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/action_noise.hpp"
#include "learner/agents/predictive/predictive_shape.hpp"

namespace troupe::learner {

/// MR.Q (Fujimoto et al. 2025) with the changes of DR.Q: a deterministic actor-critic, twin critics
/// and a policy on features that a model of the environment has taught to predict the next features
/// and the reward, unrolled over a few steps. States and pixels have the same recipe. Continuous
/// actions. It learns from sequences; their priorities are those of LAP (Fujimoto et al. 2020): an
/// error below 1 counts as 1, and replay.priority_exponent is the power.
///
/// An update trains the encoder, then the critics, then the policy, all on one batch. Values and
/// policy use an encoder that stands still for `period` updates. Then it becomes the encoder of the
/// target values, the trained one takes its place, and the targets of critics and policy become
/// copies. The original trains the encoder `period` times in a row at that moment instead; here the
/// batches of these updates are up to `period` agent steps older, and every update does the same.
struct MrqConfig {
  PredictiveConfig features{};
  std::vector<std::int64_t> policy_layers = {512, 512};
  std::vector<std::int64_t> critic_layers = {512, 512, 512};
  int n_step = 3; // of the return
  int period = 250;
  double encoder_learning_rate = 3e-4;
  double policy_learning_rate = 3e-4;
  double critic_learning_rate = 3e-4;
  double weight_decay = 1e-2;      // decoupled, of all networks
  double gradient_norm = 0;        // MR.Q: 20, of the critics
  double preactivation_weight = 0; // MR.Q: 1e-5
  bool scale_rewards = false;      // values are in units of the mean size of rewards; MR.Q: true
  double target_noise = 0.2;       // in units of the action range [-1, 1]
  double target_noise_clip = 0.3;
  std::string precision =
      "auto"; // of products: "float32", "bfloat16", "auto"; "float64": everything
  std::int64_t batch_size = 256; // global, over all replicas
  ActionNoiseConfig noise{.scale = {{.start = 0.2, .end = 0.2}}};
};

/// Takes the sequences that replay gives (learner/agents/parts/transition_batch.hpp). Metrics:
/// "critic_loss", "policy_loss", "q_mean" (in units of
/// "reward_scale", the mean size of rewards or 1), "encoder_loss" and its parts "dynamics_loss",
/// "reward_loss", "termination_loss" and "contrast_loss", "gradient_norm" of the critics. Throws
/// std::runtime_error naming the tensor and its origin on a NaN or infinity.
AgentPtr make_mrq_agent(const MrqConfig& config);

} // namespace troupe::learner
