#pragma once

#include <ATen/core/Tensor.h>

#include "learner/replicas/replica_context.hpp"
#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// The unit of rewards of SimbaV2 (Lee et al. 2025): the standard deviation of the running returns
/// of replay's steps (replay::TransitionSpec) or, if that is larger, their largest absolute value
/// so far / `limit`. The original measures each step once, while it acts. Here the deviation is
/// that of about the last 1000 batches, whose rows come from all steps in replay. Replicas in sync
/// share one unit. Must be used on its replica's thread.
class ReturnScale {
public:
  explicit ReturnScale(double limit) : limit_(limit) {}

  void build();
  /// `returns`: [batch], finite. All replicas in sync that have collectives must call it.
  void observe(ReplicaContext& context, const at::Tensor& returns);
  /// At least 1e-4.
  double value() const;
  /// Adds the live float64 tensors "return_moments" [3] and "largest_return" [1] for checkpoints.
  void show(TensorMap& out) const;

private:
  double limit_;
  at::Tensor moments_; // moving sums with the same weights: 1, return, squared return
  at::Tensor largest_;
};

} // namespace troupe::learner
