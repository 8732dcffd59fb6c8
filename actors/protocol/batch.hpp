#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "learner/tensor_map.hpp"
#include "replay/batch/batch.hpp"

namespace troupe::actors {

/// The rows of a batch that come from one shard.
struct BatchPart {
  std::size_t shard = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

/// One reusable batch. `tensors` is the input of step_fn; `view`, over the same memory, is what
/// replay gathers into. Only the holder of the pointer may use it.
struct BatchBuffer {
  /// `weighted` adds a tensor "weight" and the rows' probabilities.
  BatchBuffer(const replay::TransitionSpec& spec, std::int64_t rows, bool weighted = false);

  std::int64_t number = 0; // the update that uses this batch, from 0
  replay::BatchView view;
  /// "observation", "next_observation", "action", "reward" and "discount". Sequences have "first"
  /// and the extras by name, and no "next_observation". Transitions that have it also have
  /// "running_return". Vectors of an observation have the name replay::vector_name(). Shapes are as
  /// in BatchView.
  learner::TensorMap tensors;
  std::vector<BatchPart> parts;
  std::vector<double> priorities; // [rows], set by the learner; empty: none
  std::int64_t uses_left = 0;     // further updates from the same items

private:
  std::vector<std::uint64_t> keys_;
  std::vector<double> probabilities_;
  std::vector<std::uint32_t> table_items_;
};

} // namespace troupe::actors
