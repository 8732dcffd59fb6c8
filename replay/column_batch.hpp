#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "env/wire/frame.hpp"

namespace troupe::replay {

/// What is known of a sampled item beside its rows.
struct SampledItem {
  std::uint64_t key = 0;
  double priority = 1;
  double probability = 0;          // of the choice, in its shard
  std::uint32_t rows = 0;          // of its window
  std::uint32_t history = 0;       // of these, older than what the item is about
  std::uint32_t times_sampled = 0; // this sample counts
  std::uint32_t table_items = 0;   // that the shard held

  bool operator==(const SampledItem&) const = default;
};

/// Items of any windows and shapes as one message brought them: nothing is copied, the columns
/// point into its frames. Those may lie in memory shared with the server, which can be used anew
/// when they are let go: a batch that is kept for long is better copied. May be moved, not copied.
struct ColumnPart {
  struct Column {
    std::span<const std::byte> bytes; // [rows of all items, column's shape]; aligned to nothing
    std::size_t row_bytes = 0;
    std::vector<std::uint64_t> first; // [items + 1]: item i shows rows [first[i], first[i + 1])
  };

  std::span<const std::byte> rows(std::size_t column, std::size_t item) const {
    const Column& from = columns[column];
    return from.bytes.subspan(from.first[item] * from.row_bytes,
                              (from.first[item + 1] - from.first[item]) * from.row_bytes);
  }

  std::vector<SampledItem> items;
  std::vector<Column> columns;          // as the signature names them
  std::vector<env::wire::Frame> memory; // of the columns
};

/// A sampled batch: its parts in order, each of as many items as a message holds.
struct ColumnBatch {
  std::vector<ColumnPart> parts;

  std::int64_t items() const {
    std::int64_t count = 0;
    for (const ColumnPart& part : parts)
      count += static_cast<std::int64_t>(part.items.size());
    return count;
  }
};

} // namespace troupe::replay
