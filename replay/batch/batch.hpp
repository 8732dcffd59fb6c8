#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/chunks/spec.hpp"

namespace troupe::replay {

/// Where a batch of n-step transitions is written; the caller owns the buffers (reused; pinned for
/// CUDA).
struct BatchView {
  std::span<std::byte> observation; // [batch, stack*channels, height, width] or [batch, stack*n]
  std::span<std::byte> next_observation; // the same
  std::span<float> action;               // [batch, action_size]
  std::span<float> reward;               // [batch] n-step sums
  std::span<float> discount;             // [batch] products, 0 at a termination
  std::span<std::uint64_t> key;          // [batch] item keys
  // [batch], or empty to leave them out:
  std::span<double> priority = {};
  std::span<double> probability = {};          // of the choice within its shard
  std::span<std::uint32_t> times_sampled = {}; // including this sample
  std::span<std::uint32_t> table_items = {};   // in the shard
};

} // namespace troupe::replay
