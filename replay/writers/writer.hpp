#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

class Writer;

/// Rows of a writer that form an item.
struct Window {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::uint32_t history = 0; // leading rows that only provide context (see Item)
};

/// Returns the priority (0 to kMaxPriority) of a new item. It may read the item's rows with
/// Writer::at().
using ItemPriority = std::function<double(const Writer& rows, const Window& window)>;

/// Decides which items a writer makes from the time steps of one environment. Each policy belongs
/// to one writer.
class ItemPolicy {
public:
  virtual ~ItemPolicy() = default;

  /// Called before row `row` (from 0) of an episode is appended. If it throws, the row is not
  /// appended.
  virtual void before_row(Writer& /*writer*/, std::int64_t /*row*/) {}

  /// Called after a row was appended, to add items. The episode has `rows` rows so far; `last` is
  /// true if it ends with this row.
  virtual void after_row(Writer& writer, std::int64_t rows, bool last) = 0;

  /// Starts over with the newest row as the first one; unfinished windows make no items.
  virtual void restart() {}

  /// True if take() must withhold the rows of an open episode, so that they can still be rewritten.
  virtual bool keeps_open_episode() const { return false; }

  virtual void save_state(std::vector<std::byte>& /*out*/) const {}
  /// Restores the state at the beginning of `in` and returns the rest. Changes nothing if it
  /// throws.
  virtual std::span<const std::byte> load_state(std::span<const std::byte> in) { return in; }
};

struct WriterOptions {
  int chunk_rows = 0;         // 0: chosen from the row size, about 1 MiB per chunk
  std::int64_t reach = 1;     // how many of the newest rows items may cover
  ItemPriority priority = {}; // of items added by a policy; empty: always 1
};

// clang-format off
/// Stores the time steps of one environment row by row, each written in place, and makes items from
/// windows of the newest rows. Items are added by a policy (n_step_items.hpp, sequence_items.hpp,
/// hindsight_items.hpp) or by the caller. Used by one thread at a time; other threads may read the
/// insertions that take() returns.
///
///   Writer writer = sequence_writer(signature, 7, {.length = 80, .period = 40});
///   render(writer.next(0)); act(writer.next(1)); writer.append_step(last);
///
///   Writer writer(signature, 7, {.reach = 4});
///   render(writer.next(0)); act(writer.next(1)); writer.append();
///   writer.add_item(writer.rows() - 4, 4); // the last four steps
///
///   if (InsertionPtr insertion = writer.take()) shard.insert(insertion, …);
// clang-format on
class Writer {
public:
  /// Throws std::invalid_argument if the signature or an option is out of range.
  Writer(const Signature& signature, std::uint64_t writer_id, const WriterOptions& options = {},
         std::unique_ptr<ItemPolicy> policy = nullptr);

  /// Returns the memory for a column of the next row, aligned to its elements. It stays the same
  /// until the row is appended. Columns that are not written are undefined.
  std::span<std::byte> next(std::size_t column);

  /// Appends the row in next() as a time step, the last one of its episode if `last`; then the
  /// policy adds its items. Rethrows exceptions of the policy and the priority function. If
  /// before_row() throws, the row is not appended; after a later exception the row and the items
  /// added so far remain.
  void append_step(bool last);

  /// See ItemPolicy::restart().
  void restart_windows() {
    if (policy_)
      policy_->restart();
  }

  /// Ends the open episode without a last step, for instance because its environment failed.
  void abandon() { episode_rows_ = 0; }
  /// Returns the number of rows of the open episode; 0 if none is open.
  std::int64_t episode_rows() const { return episode_rows_; }

  /// Appends the row in next() without calling the policy: as padding, or for items that the caller
  /// adds. `flags` combines values of Chunk::Flag.
  void append(std::uint8_t flags = 0);
  void append(bool last) = delete; // use append_step()
  /// Appends `count` rows of zeros.
  void append_zeros(std::int64_t count);

  std::int64_t rows() const { return end_; } // the number of the next row
  /// Returns how many of the newest rows new items may cover: all rows so far, but at most `reach`.
  std::int64_t kept_rows() const { return std::min(reach_, end_ - begin_); }
  /// Returns a column of row `row`. Throws std::out_of_range unless the row is one of the newest
  /// `reach` rows.
  std::span<const std::byte> at(std::int64_t row, std::size_t column) const;
  /// Like at(), but writable. Also throws std::out_of_range if an insertion already contains the
  /// row.
  std::span<std::byte> rewrite(std::int64_t row, std::size_t column);

  /// Throws std::invalid_argument if the rows [first, first + count) are not among the newest
  /// `reach` rows, if the shape does not fit, or if the priority is not from 0 to kMaxPriority.
  void check_item(std::int64_t first, std::int64_t count, std::uint32_t history,
                  const ItemShape* shape, double priority) const;
  /// Adds an item with rows [first, first + count), the first `history` of which only provide
  /// context. Throws as check_item() does.
  void add_item(std::int64_t first, std::int64_t count, std::uint32_t history = 0,
                ShapePtr shape = nullptr, double priority = 1);
  /// Adds an item with the priority that WriterOptions::priority returns.
  void add_item(const Window& window, ShapePtr shape = nullptr);

  std::int64_t pending_items() const { return static_cast<std::int64_t>(items_.size()); }

  /// Returns the items and rows added since the last take(); nullptr if there are no items. Chunks
  /// that left the reach while no item was pending are not included, so the memory of a writer
  /// without items is bounded.
  InsertionPtr take();

  const RowLayout& layout() const { return *layout_; }

  /// save_state() appends the newest `reach` rows, the pending items and the state of the policy to
  /// `out`. load_state() restores them from `in`, in new chunks, and returns the rest of `in`. The
  /// writer must have the same signature, options and policy; later items then have the same
  /// content, keys and sequence numbers. Throws std::runtime_error if the bytes are not such a
  /// state, without changing anything.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void new_chunk();
  void close_chunks();
  const std::shared_ptr<Chunk>& chunk_of(std::int64_t row) const;
  void check_kept(std::int64_t row, std::int64_t least) const;

  std::shared_ptr<const RowLayout> layout_;
  std::uint64_t writer_id_;
  std::int64_t capacity_; // rows per chunk
  std::int64_t reach_;
  ItemPriority priority_;
  std::unique_ptr<ItemPolicy> policy_;
  std::shared_ptr<Chunk> current_;
  std::vector<std::shared_ptr<Chunk>> recent_; // the chunks with the newest rows, current_ last
  std::int64_t filled_ = 0;                    // rows in current_
  std::int64_t end_ = 0;   // number of the next row; row r is in chunk r / capacity_
  std::int64_t begin_ = 0; // number of the first row of this writer
  std::int64_t named_ = 0; // earlier rows are in insertions
  std::int64_t taken_ = 0; // earlier rows are in insertions, in full_rows_ or dropped
  std::int64_t episode_rows_ = 0;
  std::vector<ChunkRows> full_rows_; // rows of chunks before current_ that were not taken yet
  std::vector<ChunkPtr> closed_;     // removed from recent_ since the last take()
  std::vector<Item> items_;
  std::uint64_t next_item_ = 0;
  std::uint64_t sequence_ = 0;
};

} // namespace troupe::replay
