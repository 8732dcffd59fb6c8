#pragma once

#include <cstdint>
#include <string>

#include "replay/chunks/column_codec.hpp"
#include "replay/table/rate_limiter.hpp"
#include "replay/table/selector.hpp"

namespace troupe::replay {

/// Configuration of one shard's table.
struct TableConfig {
  std::int64_t max_items = 1'000'000;
  std::int64_t max_bytes = std::int64_t{4} << 30; // limit on the bytes of chunks in memory
  SelectorConfig sampler{.kind = SelectorKind::uniform};
  /// Chooses the items to remove when a limit is exceeded.
  SelectorConfig remover{.kind = SelectorKind::fifo};
  std::int64_t max_times_sampled = 0; // an item sampled this often is removed; 0: no limit
  /// Inserts every item with the greatest priority seen so far (initially 1) instead of its own, so
  /// that it is sampled soon (Schaul et al. 2016).
  bool insert_at_maximum = false;
  /// Encodes full chunks that no writer uses any more; each insertion encodes at most one chunk
  /// more than it added.
  Compression compression = Compression::none;
  RateLimiterConfig limiter = {};

  bool operator==(const TableConfig&) const = default;
};

/// Throws std::invalid_argument naming the key (replay.max_items …), the value and the rule.
void check(const TableConfig& config);

const char* compression_name(Compression compression); // "none", "packed", …
/// Throws std::invalid_argument with the list of names.
Compression compression_named(const std::string& name);

} // namespace troupe::replay
