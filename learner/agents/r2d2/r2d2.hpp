#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/agents/parts/exploration.hpp"

namespace troupe::learner {

/// R2D2 (Kapturowski et al. 2019): recurrent deep Q-learning from overlapping sequences. The first
/// steps of a sequence (burn-in) only update the stored state. Replay computes priorities. One
/// choice per step, from states or pixels; the previous choice is also an input of the memory.
struct R2d2Config {
  std::vector<std::int64_t> layers = {128};
  std::string encoder = "minatar";
  std::int64_t lstm = 128;
  std::int64_t burn_in = 10;  // steps of a sequence without a loss
  std::int64_t length = 20;   // steps of a sequence with a loss
  std::int64_t period = 20;   // steps between the beginnings of two sequences
  int n_step = 3;             // steps of returns
  bool rescale = true;        // transforms values by sign(x) (sqrt(|x| + 1) - 1) + x / 1000
  double largest_share = 0.9; // weight of the largest error in a priority; the rest: mean error
  double learning_rate = 5e-4;
  double adam_epsilon = 1e-8;
  int target_period = 400;
  double gradient_norm = 40;
  EpsilonConfig epsilon{.probability = {.start = 1, .end = 0.4, .steps = 10'000}, .ladder = 7};
  std::string precision = "float32"; // "float64": for tests
  std::int64_t batch_size = 32;      // sequences, over all replicas
};

/// Makes the agent, which learns from replay batches of sequences
/// (learner/agents/parts/transition_batch.hpp). Metrics: "critic_loss", "q_mean", "gradient_norm".
/// Throws std::runtime_error naming the tensor and its origin on NaN or infinity.
AgentPtr make_r2d2_agent(const R2d2Config& config);

/// Returns the n-step targets [batch, steps] of values [batch, steps + 1]. A sum ends with its
/// sequence or at the end of an episode, whichever comes first.
at::Tensor sequence_targets(const TensorMap& batch, const at::Tensor& values, int n_step,
                            double discount);

} // namespace troupe::learner
