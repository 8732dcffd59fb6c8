#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/spec.hpp"

namespace troupe::replay {

/// Where a batch of n-step transitions is written; every buffer belongs to the caller (reused, on
/// CUDA pinned).
struct BatchView {
  std::span<std::byte> observation; // [batch, stack*channels, height, width] or [batch, stack*n]
  std::span<std::byte> next_observation; // the same
  std::span<float> action;               // [batch, action_size]
  std::span<float> reward;               // [batch] n-step sums
  std::span<float> discount;             // [batch] products, 0 at a termination
  std::span<std::uint64_t> key;          // [batch] item keys
  // Where a buffer for them is given (empty: left out), [batch]:
  std::span<double> priority = {};
  std::span<double> probability = {};          // of the choice, in its shard
  std::span<std::uint32_t> times_sampled = {}; // this sample counts
  std::span<std::uint32_t> table_items = {};   // that the shard held
};

} // namespace troupe::replay
