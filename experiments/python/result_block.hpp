#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "env/pool/environment_pool.hpp"
#include "experiments/python/recycled_blocks.hpp"

namespace troupe::python {

/// The results of some environments, stored in one block of memory.
struct ResultParts {
  env::PoolBatch batch;
  std::span<std::uint8_t> terminated;
  std::span<std::uint8_t> truncated;
  std::size_t bytes = 0; // of the block
};

/// Lays out the parts one after the other in `block`. With a null block, only `bytes` of the result
/// is meaningful.
inline ResultParts result_parts(std::byte* block, std::size_t row_bytes, std::size_t rows) {
  ResultParts out;
  const auto take = [&]<typename T>(std::span<T>& part, std::size_t count) {
    part = {reinterpret_cast<T*>(block == nullptr ? nullptr : block + out.bytes), count};
    out.bytes += (part.size_bytes() + RecycledBlocks::kAlignment - 1) / RecycledBlocks::kAlignment
                 * RecycledBlocks::kAlignment;
  };
  take(out.batch.observations, rows * row_bytes);
  take(out.batch.rewards, rows);
  take(out.batch.discounts, rows);
  take(out.batch.step_types, rows);
  take(out.batch.statuses, rows);
  take(out.batch.environments, rows);
  take(out.batch.episode_steps, rows);
  take(out.batch.episode_returns, rows);
  take(out.terminated, rows);
  take(out.truncated, rows);
  return out;
}

} // namespace troupe::python
