#pragma once

#include <cstdint>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// Rows that are fetched by number. Threads of several replicas may read at the same time.
class Dataset {
public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0; // rows
  /// Returns the rows with these numbers, in this order: int64 [n] -> {name: [n, …]}. Any
  /// randomness in a row depends only on the data set's seed, the epoch and the row's number.
  /// Therefore any number of replicas and threads, and a resumed run, see the same bytes.
  virtual TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const = 0;
};

/// Rows in memory, {name: [rows, …]}. They are the same in every epoch.
class TensorDataset : public Dataset {
public:
  /// Throws std::invalid_argument naming a tensor with a different number of rows.
  explicit TensorDataset(TensorMap tensors);
  std::int64_t size() const override { return rows_; }
  /// Runs on the calling thread alone if the tensors are on the CPU.
  TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const override;

private:
  TensorMap tensors_;
  std::int64_t rows_ = 0;
};

/// Decides which rows a replica sees at which step. The order of an epoch depends only on the seed
/// and the epoch. Therefore any number of replicas see the same global batches, and a resumed run
/// sees the rest of its epoch.
struct EpochPlan {
  std::int64_t dataset_rows = 0;
  std::int64_t global_batch = 0; // rows of one step of a sync group
  int group = 0;                 // index of the sync group; groups take turns at the batches
  int groups = 1;
  int rank = 0; // in the group
  int replicas = 1;
  bool shuffle = true;
  std::uint64_t seed = 1;

  /// Throws std::invalid_argument naming the sizes that do not fit.
  void check() const;
  std::int64_t steps_per_epoch() const; // of each sync group
  /// Returns all rows in the order of this epoch, int64 [dataset_rows].
  at::Tensor order(std::int64_t epoch) const;
  /// Returns this replica's part of the batch of `step`, cut from `order`, int64.
  at::Tensor part(const at::Tensor& order, std::int64_t step) const;
};

} // namespace troupe::learner
