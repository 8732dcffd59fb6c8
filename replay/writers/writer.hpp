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
  std::uint32_t history = 0; // the first rows, which only lead up to the item (see Item)
};

/// The priority (0 to kMaxPriority) of a new item; may read its rows by Writer::at().
using ItemPriority = std::function<double(const Writer& rows, const Window& window)>;

/// Decides which items a writer makes of the time steps of one environment. Each policy belongs to
/// one writer.
class ItemPolicy {
public:
  virtual ~ItemPolicy() = default;

  /// Called before row `row` (from 0) of an episode is appended. Throwing refuses the row.
  virtual void before_row(Writer& /*writer*/, std::int64_t /*row*/) {}

  /// Called after the newest row was appended as the last of `rows` rows of its episode so far;
  /// `last`: the episode ends with it. Adds items.
  virtual void after_row(Writer& writer, std::int64_t rows, bool last) = 0;

  /// The newest row is the first one of what comes: unfinished windows make no items.
  virtual void restart() {}

  /// True: rows of an open episode are not given out, so that they can still be rewritten.
  virtual bool keeps_open_episode() const { return false; }

  virtual void save_state(std::vector<std::byte>& /*out*/) const {}
  /// Returns the rest of `in`. Changes nothing if it throws.
  virtual std::span<const std::byte> load_state(std::span<const std::byte> in) { return in; }
};

struct WriterOptions {
  int chunk_rows = 0;         // 0: chosen from the size of a row, about a MiB per chunk
  std::int64_t reach = 1;     // how many of the newest rows items may cover
  ItemPriority priority = {}; // of items added by a policy; empty: 1
};

// clang-format off
/// Stores the time steps of one environment row by row, each written in place, and makes items of
/// windows of the newest rows: by a policy (n_step_items.hpp, sequence_items.hpp,
/// hindsight_items.hpp), or by the caller. One thread; other threads may read the items given out.
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

  /// Where a column of the next row is written, aligned to its elements; the same memory until the
  /// row is appended. Columns that are not written are undefined.
  std::span<std::byte> next(std::size_t column);

  /// Appends the row in next() as a time step; `last`: of its episode. The policy adds its items.
  /// Throws what the policy and the priority function throw: before_row() refuses the row, after
  /// that the row is there and the items added so far are.
  void append_step(bool last);

  /// See ItemPolicy::restart().
  void restart_windows() {
    if (policy_)
      policy_->restart();
  }

  /// Ends the open episode without a last step, for instance after its environment failed.
  void abandon() { episode_rows_ = 0; }
  std::int64_t episode_rows() const { return episode_rows_; } // of the open episode; 0: none

  /// Appends the row in next() without the policy, as padding or for items of the caller's own.
  /// `flags`: Chunk::Flag.
  void append(std::uint8_t flags = 0);
  void append(bool last) = delete; // append_step()
  /// Appends `count` rows of zeros.
  void append_zeros(std::int64_t count);

  std::int64_t rows() const { return end_; } // the number of the next row
  /// How many of the newest rows items may cover: all of them, at most `reach`.
  std::int64_t kept_rows() const { return std::min(reach_, end_ - begin_); }
  /// A column of row `row`, one of the newest `reach` rows. Throws std::out_of_range otherwise.
  std::span<const std::byte> at(std::int64_t row, std::size_t column) const;
  /// The same, writable, of a row that no insertion has named. Throws std::out_of_range otherwise.
  std::span<std::byte> rewrite(std::int64_t row, std::size_t column);

  /// Adds an item of rows [first, first + count), the first `history` of which lead up to it.
  /// Throws std::invalid_argument if they are not among the newest `reach` rows, if the shape does
  /// not fit, and if the priority is not 0 to kMaxPriority.
  void add_item(std::int64_t first, std::int64_t count, std::uint32_t history = 0,
                ShapePtr shape = nullptr, double priority = 1);
  /// The same, with the priority of WriterOptions.
  void add_item(const Window& window, ShapePtr shape = nullptr);

  std::int64_t pending_items() const { return static_cast<std::int64_t>(items_.size()); }

  /// All items since the last take() with the new rows; nullptr if there are no items.
  InsertionPtr take();

  const RowLayout& layout() const { return *layout_; }

  /// Appends the newest `reach` rows, the pending items and the state of the policy to `out`.
  /// load_state(), on a writer of the same signature, options and policy, restores them in chunks
  /// of its own and returns the rest of `in`; later items have the same content, keys and sequence
  /// numbers. Throws std::runtime_error on bytes that are not such a state, and changes nothing
  /// then.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void new_chunk();
  void close_chunks();
  const std::shared_ptr<Chunk>& chunk_of(std::int64_t row) const;
  void check_kept(std::int64_t row, std::int64_t least) const;

  std::shared_ptr<const RowLayout> layout_;
  std::uint64_t writer_id_;
  std::int64_t capacity_; // rows of a chunk
  std::int64_t reach_;
  ItemPriority priority_;
  std::unique_ptr<ItemPolicy> policy_;
  std::shared_ptr<Chunk> current_;
  std::vector<std::shared_ptr<Chunk>> recent_; // chunks of the newest rows, current_ last
  std::int64_t filled_ = 0;                    // rows of current_
  std::int64_t end_ = 0;   // number of the next row; row r is in chunk r / capacity_
  std::int64_t begin_ = 0; // the oldest row of all time
  std::int64_t named_ = 0; // insertions have named the rows before this
  std::int64_t taken_ = 0; // the rows before this are named or in full_rows_
  std::int64_t episode_rows_ = 0;
  std::vector<ChunkRows> full_rows_; // not yet taken, of chunks before current_
  std::vector<ChunkPtr> closed_;     // removed from recent_ since the last take()
  std::vector<Item> items_;
  std::uint64_t next_item_ = 0;
  std::uint64_t sequence_ = 0;
};

} // namespace troupe::replay
