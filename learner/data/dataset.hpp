#pragma once

#include <cstdint>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

/// Rows that can be fetched by their number. Threads of several replicas read it at once.
class Dataset {
public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0; // rows
  /// The rows of these numbers, in this order: int64 [n] -> {name: [n, …]}. What is random about a
  /// row depends only on the data set's seed, the epoch and the row's number, so that any number of
  /// replicas and threads, and a resumed run, see the same bytes.
  virtual TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const = 0;
};

/// Rows in memory, {name: [rows, …]}; the same in every epoch.
class TensorDataset : public Dataset {
public:
  /// Throws std::invalid_argument naming a tensor with another number of rows.
  explicit TensorDataset(TensorMap tensors);
  std::int64_t size() const override { return rows_; }
  /// On the calling thread alone, where the tensors are the processor's.
  TensorMap rows(const at::Tensor& numbers, std::int64_t epoch) const override;
  const TensorMap& tensors() const { return tensors_; }

private:
  TensorMap tensors_;
  std::int64_t rows_ = 0;
};

/// Which rows a replica sees when. The order of an epoch depends on seed and epoch alone, so that
/// any number of replicas see the same global batches, and a resumed run the rest of its epoch.
struct EpochPlan {
  std::int64_t dataset_rows = 0;
  std::int64_t global_batch = 0; // rows of one step of a sync group
  int group = 0;                 // sync groups take turns at the batches
  int groups = 1;
  int rank = 0; // in the group
  int replicas = 1;
  bool shuffle = true;
  bool keep_last = false; // the batch at the end that is smaller, where every replica gets a row
  std::uint64_t seed = 1;

  /// Throws std::invalid_argument naming sizes that do not fit.
  void check() const;
  std::int64_t steps_per_epoch() const; // of each sync group
  /// All rows in the order of this epoch, int64 [dataset_rows].
  at::Tensor order(std::int64_t epoch) const;
  /// This replica's part of a step's batch, of that order, int64.
  at::Tensor part(const at::Tensor& order, std::int64_t step) const;
  /// What this replica's mean counts in the mean over the group: rows · replicas / rows of the
  /// batch.
  double weight(std::int64_t step) const;

private:
  std::int64_t batch_rows(std::int64_t step, std::int64_t& begin) const;
};

} // namespace troupe::learner
