#pragma once

#include <cstdint>

#include "replay/chunks/signature.hpp"
#include "replay/table/item_shapes.hpp"
#include "replay/table/random.hpp"
#include "replay/table/rate_limiter.hpp"
#include "replay/table/table_chunks.hpp"
#include "replay/table/table_config.hpp"
#include "replay/table/table_items.hpp"
#include "replay/table/writer_sequences.hpp"

namespace troupe::replay {

/// Everything in a table that a checkpoint saves.
struct TableState {
  /// Throws std::invalid_argument as check() does.
  TableState(const TableConfig& configuration, const Signature& of, std::uint64_t seed)
      : config((check(configuration), configuration)),
        signature((check(of), of)),
        limiter(config.limiter),
        random(seed),
        items(config),
        chunks(config.compression) {}

  TableConfig config;
  Signature signature;
  RateLimiter limiter;
  Random random;
  TableItems items;
  TableChunks chunks;
  ItemShapes shapes;
  WriterSequences writers;
  double greatest_priority = 1; // of all items so far
  std::int64_t sampled = 0;
  std::int64_t dropped_duplicates = 0; // insertions
  std::int64_t updated_priorities = 0;
  std::int64_t late_priorities = 0; // for items that were already removed
};

} // namespace troupe::replay
