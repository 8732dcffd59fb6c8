#pragma once

#include <ATen/core/Tensor.h>

#include "learner/replicas/replica_context.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The mean absolute reward, in whose units critics learn, and that of the previous period, in
/// whose units the target critics learned. Without `measured` both are 1.
class RewardScale {
public:
  explicit RewardScale(bool measured) : measured_(measured) {}

  /// Resets the state to that of a new replica. Must be called before other functions.
  void build();
  /// Adds the first `steps` rewards of the batch's sequences, over all replicas in sync.
  void see(ReplicaContext& context, const TensorMap& batch, std::int64_t steps);
  /// Must be called when targets have become copies.
  void end_period();

  double current() const { return numbers_[0].item<double>(); }
  double of_targets() const { return numbers_[1].item<double>(); }
  /// The state for checkpoints, float64 [4]: both scales, the sum of absolute rewards and their
  /// number. Earlier periods have a lower weight in the latter two.
  const at::Tensor& numbers() const { return numbers_; }

private:
  void refresh();

  bool measured_;
  at::Tensor numbers_;
};

} // namespace troupe::learner
