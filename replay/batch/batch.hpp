#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/chunks/spec.hpp"

namespace troupe::replay {

/// Where a batch of n-step transitions or of sequences is written; the caller owns the buffers
/// (reused; pinned for CUDA).
struct BatchView {
  /// [batch, stack*channels, height, width] or [batch, stack*n]; of sequences [batch, steps + 1, …]
  std::span<std::byte> observation;
  std::span<std::byte> next_observation; // the same, of transitions only
  std::span<float> action;               // [batch, action_size] or [batch, steps, action_size]
  std::span<float> reward;               // [batch] n-step sums, or [batch, steps]
  std::span<float> discount;             // [batch] products, 0 at a termination, or [batch, steps]
  std::span<std::uint64_t> key;          // [batch] item keys
  // Of sequences:
  std::span<std::uint8_t> first = {};            // [batch, steps + 1] 1: of an episode
  std::vector<std::span<std::byte>> extras = {}; // of each: [batch, steps, its shape]
  // Of each of the spec's vectors: [batch, its shape]; of sequences [batch, steps + 1, its shape]
  std::vector<std::span<std::byte>> vectors = {};
  std::vector<std::span<std::byte>> next_vectors = {}; // of transitions only
  // [batch], or empty to leave them out:
  std::span<double> priority = {};
  std::span<double> probability = {};          // of the choice within its shard
  std::span<std::uint32_t> times_sampled = {}; // including this sample
  std::span<std::uint32_t> table_items = {};   // in the shard
};

} // namespace troupe::replay
