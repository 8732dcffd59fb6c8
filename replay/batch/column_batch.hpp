#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "env/wire/frame.hpp"

namespace troupe::replay {

/// A sampled item without its rows.
struct SampledItem {
  std::uint64_t key = 0;
  double priority = 1;
  double probability = 0;          // of choosing the item within its shard
  std::uint32_t rows = 0;          // rows of its window
  std::uint32_t history = 0;       // leading rows that only provide context (see Item)
  std::uint32_t times_sampled = 0; // including this sample
  std::uint32_t table_items = 0;   // items in the shard

  bool operator==(const SampledItem&) const = default;
};

/// Items with any windows and shapes from one message. Nothing is copied: the columns point into
/// the frames of the message. The frames may be in memory shared with the server, which can reuse
/// it only after they are released, so copy a batch that is kept for long. Movable, not copyable.
struct ColumnPart {
  struct Column {
    std::span<const std::byte> bytes; // [rows of all items, shape of the column]; unaligned
    std::size_t row_bytes = 0;
    std::vector<std::uint64_t> first; // [items + 1]: item i shows rows [first[i], first[i + 1])
  };

  std::span<const std::byte> rows(std::size_t column, std::size_t item) const {
    const Column& from = columns[column];
    return from.bytes.subspan(from.first[item] * from.row_bytes,
                              (from.first[item + 1] - from.first[item]) * from.row_bytes);
  }

  std::vector<SampledItem> items;
  std::vector<Column> columns;          // in the order of the signature
  std::vector<env::wire::Frame> memory; // the columns point into it
};

/// A sampled batch: its parts in order, one for each message.
struct ColumnBatch {
  std::vector<ColumnPart> parts;
};

} // namespace troupe::replay
