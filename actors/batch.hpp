#pragma once

#include <cstdint>
#include <memory>

#include "learner/replica.hpp"
#include "replay/batch.hpp"

namespace troupe::actors {

/// One reusable batch: tensors for step_fn and, over the same memory, the view that replay gathers
/// into. Whoever holds the pointer is its only user.
struct BatchBuffer {
  BatchBuffer(const replay::TransitionSpec& spec, std::int64_t rows);

  std::int64_t number = 0; // which update it is for, from 0
  replay::BatchView view;
  learner::TensorMap tensors; // "observation", "next_observation", "action", "reward", "discount"

private:
  std::vector<std::uint64_t> keys_;
};

} // namespace troupe::actors
