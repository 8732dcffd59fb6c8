#pragma once

#include <ATen/core/Tensor.h>

#include "learner/replicas/replica_context.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The mean size of the rewards that were seen, in whose units critics learn, and that of the
/// period before, in whose units the target critics have learnt. Without `measured` both are 1.
class RewardScale {
public:
  explicit RewardScale(bool measured) : measured_(measured) {}

  /// The state of a new replica. Call before the others.
  void build();
  /// Of the first `steps` of the batch's sequences, over all replicas in sync.
  void see(ReplicaContext& context, const TensorMap& batch, std::int64_t steps);
  /// Targets became copies.
  void end_period();

  double current() const { return numbers_[0].item<double>(); }
  double of_targets() const { return numbers_[1].item<double>(); }
  /// float64 [4], for checkpoints: both scales; the sum of the sizes of rewards and their number,
  /// in which earlier periods count less.
  const at::Tensor& numbers() const { return numbers_; }

private:
  void refresh();

  bool measured_;
  at::Tensor numbers_;
};

} // namespace troupe::learner
