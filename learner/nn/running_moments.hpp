#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

class ReplicaContext;

/// Tracks the mean and variance of each column over all rows observed so far, and normalises rows
/// by them. Each replica in sync observes the rows of all replicas in sync, so that their moments
/// are equal; other replicas have moments of their own rows. Used by the thread of its replica.
class RunningMoments {
public:
  RunningMoments() = default;
  explicit RunningMoments(std::int64_t columns) : columns_(columns) {}

  /// Sets mean 0 and variance 1 on the options' device until the first rows are observed.
  void build(const at::TensorOptions& options);
  /// Observes finite rows [rows, columns]. This is a collective of the replicas in sync that have
  /// collectives. The host reads no values.
  void observe(ReplicaContext& context, const at::Tensor& rows);
  /// Returns (rows - mean) / deviation, in the type of the rows.
  at::Tensor normalised(const at::Tensor& rows) const;

  /// Adds the live float64 tensors "<prefix>.mean", "<prefix>.variance" and "<prefix>.count".
  void show(const std::string& prefix, TensorMap& out) const;
  /// Returns the moments for the acting side: float32 [2 * columns] on the CPU, first the means,
  /// then 1 / deviation.
  at::Tensor published() const;

private:
  at::Tensor inverse_deviation() const;

  std::int64_t columns_ = 0;
  at::Tensor count_; // [1]
  at::Tensor mean_;
  at::Tensor variance_;
};

} // namespace troupe::learner
