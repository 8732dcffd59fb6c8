#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "learner/off_policy/recorded_steps.hpp"

namespace troupe::learner {

struct FittedEvaluation {
  std::vector<std::int64_t> layers = {128, 128};
  double learning_rate = 1e-3; // falls in a line to 0
  std::int64_t batch_size = 256;
  std::int64_t updates = 20'000;
  double target_update = 0.05; // of the target network's way to the network, at each update
  double discount = 0.99;
  /// Steps after which an episode is cut, whatever happens; 0: none. With a limit the network also
  /// sees the time, so that it learns the values of such episodes.
  std::int64_t time_limit = 0;
  std::uint64_t seed = 1;
};

/// What is evaluated, along recorded steps (RecordedPolicy).
struct EvaluatedPolicy {
  std::span<const at::Tensor> actions; // one or several draws of [rows, action size]
  at::Tensor memory = {};              // [rows, state size]; undefined: it remembers nothing
};

/// Discounted sums of what follows at each row.
struct FittedValues {
  std::vector<double> policy;   // [rows] with the policy's action, the mean over its draws
  std::vector<double> recorded; // [rows] with the recorded action, and the policy's from then on
};

/// Fitted Q evaluation (Le et al. 2019): a network learns from the recorded steps what follows when
/// the policy's actions are taken from the next row on, in units of the recorded returns. The
/// network sees what the policy observes and remembers. It learns from the steps of `episodes`,
/// which may be named several times. Depends only on the arguments. `stopped` (may be empty) is
/// asked at each update; what it ends is no estimate.
/// Throws std::invalid_argument if the recording does not fit `time_limit` or a choice is none,
/// std::runtime_error if the network's numbers overflow.
FittedValues fitted_values(const RecordedSteps& steps, const EvaluatedPolicy& policy,
                           std::span<const std::int64_t> episodes, const FittedEvaluation& config,
                           const std::function<bool()>& stopped = {});

} // namespace troupe::learner
