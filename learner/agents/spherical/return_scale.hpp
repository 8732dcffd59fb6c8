#pragma once

#include <ATen/core/Tensor.h>

#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// A unit of rewards in which returns lie within ± `limit`, from the transitions of replay: a
/// return is at most the largest reward / (1 - discount). It only grows. Replicas in sync have a
/// common one. The thread of its replica.
class ReturnScale {
public:
  explicit ReturnScale(double limit) : limit_(limit) {}

  void build();
  /// reward, discount: [batch], finite. A collective of the replicas in sync that have collectives.
  void observe(ReplicaContext& context, const at::Tensor& reward, const at::Tensor& discount);
  double value() const { return scale_.item<double>(); }
  /// float64 [1], live, for checkpoints.
  const at::Tensor& tensor() const { return scale_; }

private:
  double limit_;
  at::Tensor scale_;
};

} // namespace troupe::learner
