#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "learner/off_policy/recorded_steps.hpp"

namespace troupe::learner {

struct FittedEvaluation {
  std::vector<std::int64_t> layers = {128, 128};
  double learning_rate = 1e-3; // decays linearly to 0
  std::int64_t batch_size = 256;
  std::int64_t updates = 20'000;
  double target_update = 0.05; // step of the target network towards the network, per update
  double discount = 0.99;
  /// Number of steps after which every episode is truncated; 0: none. With a limit, the network
  /// also observes the time, so that it can learn the values of truncated episodes.
  std::int64_t time_limit = 0;
  std::uint64_t seed = 1;
};

/// The policy to evaluate, on recorded steps (see RecordedPolicy).
struct EvaluatedPolicy {
  std::span<const at::Tensor> actions; // one or several draws, each [rows, action size]
  at::Tensor memory = {};              // [rows, state size]; undefined: no memory
};

/// Expected discounted returns from each row.
struct FittedValues {
  std::vector<double> policy;   // [rows] of the policy's action, averaged over its draws
  std::vector<double> recorded; // [rows] of the recorded action, followed by the policy's
};

/// Fitted Q evaluation (Le et al. 2019): a network learns from the recorded steps which discounted
/// return follows an action if the policy acts from the next row on. Values are in units of the
/// recorded returns. The network sees the policy's observations and memory. It learns from the
/// steps of `episodes`, which may contain an episode several times. The result depends only on the
/// arguments. `stopped` (may be empty) is called before each update; if it returns true, fitting
/// ends and the result is not a valid estimate. Throws std::invalid_argument if the recording does
/// not fit `time_limit`, and std::runtime_error if the network's values overflow.
FittedValues fitted_values(const RecordedSteps& steps, const EvaluatedPolicy& policy,
                           std::span<const std::int64_t> episodes, const FittedEvaluation& config,
                           const std::function<bool()>& stopped = {});

} // namespace troupe::learner
