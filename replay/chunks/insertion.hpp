#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "replay/chunks/chunk.hpp"
#include "replay/chunks/signature.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::replay {

/// Throws std::invalid_argument naming the field, its value and the rule.
void check(const TransitionSpec& spec);

/// Consecutive chunks of one writer, all of the same capacity. Does not allocate for up to two.
class ChunkRun {
public:
  ChunkRun() = default;
  ChunkRun(ChunkPtr only) : size_(1) { first_[0] = std::move(only); }

  std::size_t size() const { return size_; }
  const ChunkPtr& operator[](std::size_t i) const {
    return i < first_.size() ? first_[i] : more_[i - first_.size()];
  }
  void set(std::size_t i, ChunkPtr chunk) {
    (i < first_.size() ? first_[i] : more_[i - first_.size()]) = std::move(chunk);
  }
  /// New entries are null.
  void resize(std::size_t size) {
    for (std::size_t i = size; i < size_ && i < first_.size(); ++i)
      first_[i].reset();
    if (size > first_.size() || !more_.empty())
      more_.resize(size > first_.size() ? size - first_.size() : 0);
    size_ = size;
  }

private:
  std::size_t size_ = 0;
  std::array<ChunkPtr, 2> first_;
  std::vector<ChunkPtr> more_;
};

/// Rows [first, first + count) of an item's window.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  auto operator<=>(const Slice&) const = default;
};

/// The rows of its window that an item shows: any number of slices for each column.
struct ItemShape {
  std::vector<std::vector<Slice>> columns;
  auto operator<=>(const ItemShape&) const = default;
};
using ShapePtr = std::shared_ptr<const ItemShape>;

constexpr std::size_t kMostSlices = 4096; // in all columns of a shape together

/// True if the shape has a list of slices for each column, every slice is within a window of `rows`
/// rows, and there are at most kMostSlices in total.
bool fits(const ItemShape& shape, std::size_t columns, std::uint32_t rows);

/// Returns how many rows of a column an item of this shape shows, for a window of `rows` rows. A
/// null shape shows all rows.
std::uint32_t rows_shown(const ItemShape* shape, std::size_t column, std::uint32_t rows);

constexpr std::uint32_t kMostWindow = std::uint32_t{1} << 24; // rows of an item's window

/// A window of consecutive rows of one writer. It begins in chunks[0] at row `begin` and continues
/// at row 0 of the next chunks. A transition consists of the frames of its observation (`history`
/// rows and the row at which it starts) and `steps()` further rows.
struct Item {
  /// Counted from 0: in a table, the number of the item there; before that, in its writer.
  std::uint64_t key = 0;
  ChunkRun chunks;
  ShapePtr shape; // null: all rows of all columns
  std::uint32_t begin = 0;
  std::uint32_t rows = 0;
  /// Number of leading rows that only provide context; less than `rows`. For a transition it is
  /// less than the stack, and smaller near the beginning of an episode.
  std::uint32_t history = 0;
  std::uint32_t times_sampled = 0; // including the sample that returned it
  std::uint32_t table_items = 0;   // items in the table when it was sampled
  double priority = 1;             // 0 to kMaxPriority of selector.hpp
  double probability = 0;          // of being chosen, when it was sampled

  std::uint32_t steps() const { return rows - 1 - history; }
  const std::byte* row(std::uint32_t k) const { // k < rows; raw chunks only
    const std::uint32_t capacity = chunks[0]->capacity();
    const std::uint32_t at = begin + k;
    return at < capacity ? chunks[0]->row(at) : chunks[at / capacity]->row(at % capacity);
  }
};

/// Rows [first, first + count) of a chunk, newly filled.
struct ChunkRows {
  ChunkPtr chunk;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Rows and items that a writer adds to a table in one step. Within a process the table holds the
/// writer's chunks; between processes the new rows are sent. Items refer to rows of this insertion
/// and of earlier ones by the same writer.
struct Insertion {
  std::uint64_t writer_id = 0;
  std::uint64_t sequence = 0; // per writer, from 1; a table accepts each once
  std::vector<ChunkRows> rows;
  std::vector<Item> items;
  std::vector<ChunkPtr> closed; // chunks that no later insertion of this writer refers to
};
using InsertionPtr = std::shared_ptr<const Insertion>;

} // namespace troupe::replay
