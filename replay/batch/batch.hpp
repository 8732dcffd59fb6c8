#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/chunks/spec.hpp"

namespace troupe::replay {

/// The buffers into which a batch of n-step transitions or sequences is written. The caller owns
/// them and usually reuses them; for CUDA they are pinned.
struct BatchView {
  /// [batch, stack*channels, height, width] or [batch, stack*n]; sequences: [batch, steps + 1, …]
  std::span<std::byte> observation;
  std::span<std::byte> next_observation; // as above, transitions only
  std::span<float> action;               // [batch, action_size] or [batch, steps, action_size]
  std::span<float> reward;               // [batch] n-step sums, or [batch, steps]
  std::span<float> discount;             // [batch] products, 0 at a termination, or [batch, steps]
  std::span<std::uint64_t> key;          // [batch] item keys
  // Sequences only:
  std::span<std::uint8_t> first = {};            // [batch, steps + 1] 1: first of an episode
  std::vector<std::span<std::byte>> extras = {}; // for each extra: [batch, steps, its shape]
  // For each vector of the spec: [batch, its shape]; for sequences [batch, steps + 1, its shape]
  std::vector<std::span<std::byte>> vectors = {};
  std::vector<std::span<std::byte>> next_vectors = {}; // transitions only
  std::span<float> running_return = {}; // [batch] of the first step, if the spec has it
  // [batch], or empty if not wanted:
  std::span<double> priority = {};
  std::span<double> probability = {};          // of choosing the item within its shard
  std::span<std::uint32_t> times_sampled = {}; // including this sample
  std::span<std::uint32_t> table_items = {};   // items in the shard
};

} // namespace troupe::replay
