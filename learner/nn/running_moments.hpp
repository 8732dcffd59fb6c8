#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

class ReplicaContext;

/// Mean and variance of each column of all rows observed so far, and rows in units of them.
/// Replicas in sync observe all of each other's rows, so that their moments are equal; others have
/// moments of their own rows. The thread of its replica.
class RunningMoments {
public:
  RunningMoments() = default;
  explicit RunningMoments(std::int64_t columns) : columns_(columns) {}

  /// Mean 0 and variance 1 on the options' device, until the first rows.
  void build(const at::TensorOptions& options);
  /// rows: [rows, columns], finite. A collective of the replicas in sync that have collectives. No
  /// read by the host.
  void observe(ReplicaContext& context, const at::Tensor& rows);
  /// (rows - mean) / deviation, of the rows' type.
  at::Tensor normalised(const at::Tensor& rows) const;

  /// Adds "<prefix>.mean", "<prefix>.variance" and "<prefix>.count", the live float64 tensors.
  void show(const std::string& prefix, TensorMap& out) const;
  /// For the acting side: float32 [2 * columns] on the CPU, the means, then 1 / deviation.
  at::Tensor published() const;

private:
  at::Tensor inverse_deviation() const;

  std::int64_t columns_ = 0;
  at::Tensor count_; // [1]
  at::Tensor mean_;
  at::Tensor variance_;
};

} // namespace troupe::learner
