#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "learner/tensor_map.hpp"
#include "replay/batch/batch.hpp"

namespace troupe::actors {

/// Rows of a batch from one shard.
struct BatchPart {
  std::size_t shard = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

/// One reusable batch: tensors for step_fn and, over the same memory, the view that replay gathers
/// into. The holder of the pointer is its only user.
struct BatchBuffer {
  /// `weighted`: with a tensor "weight" and the rows' probabilities.
  BatchBuffer(const replay::TransitionSpec& spec, std::int64_t rows, bool weighted = false);

  std::int64_t number = 0; // the update that it is for, from 0
  replay::BatchView view;
  /// "observation", "next_observation", "action", "reward", "discount"; of sequences also "first"
  /// and the extras by name, and no "next_observation"; the vectors of an observation by
  /// replay::vector_name(). The shapes are BatchView's.
  learner::TensorMap tensors;
  std::vector<BatchPart> parts;
  std::vector<double> priorities; // [rows] from the learner on the way back; empty: none

private:
  std::vector<std::uint64_t> keys_;
  std::vector<double> probabilities_;
  std::vector<std::uint32_t> table_items_;
};

} // namespace troupe::actors
