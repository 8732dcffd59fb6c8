#pragma once

#include <ATen/core/Tensor.h>

#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// A unit of rewards in which returns are within ± `limit`. It is computed from replay's
/// transitions: a return is at most the largest absolute reward / (1 - discount). The unit never
/// decreases. Replicas in sync share one. Must be used on its replica's thread.
class ReturnScale {
public:
  explicit ReturnScale(double limit) : limit_(limit) {}

  void build();
  /// `reward`, `discount`: [batch], finite. All replicas in sync that have collectives must call
  /// it.
  void observe(ReplicaContext& context, const at::Tensor& reward, const at::Tensor& discount);
  double value() const { return scale_.item<double>(); }
  /// The state for checkpoints, float64 [1]; not a copy.
  const at::Tensor& tensor() const { return scale_; }

private:
  double limit_;
  at::Tensor scale_;
};

} // namespace troupe::learner
