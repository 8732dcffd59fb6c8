#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "replay/insertion.hpp"
#include "replay/spec.hpp"

namespace troupe::replay {

class Writer;

/// Rows of a writer that an item is about to be made of.
struct Window {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::uint32_t history = 0; // of these, older than what the item is about
};

/// The priority (0 to kMaxPriority) of an item that is made; may read its rows by Writer::at().
using ItemPriority = std::function<double(const Writer& rows, const Window& window)>;

struct WriterOptions {
  int chunk_rows = 0;     // 0: chosen from the size of a row, about a MiB
  std::int64_t reach = 1; // how many of the newest rows items may lie in
};

/// Stores time steps, row by row in place, and makes items of any windows of the newest ones. Rows
/// are counted up (a state that is loaded counts on elsewhere). One thread; items it has given out
/// may be read by others meanwhile.
///
///   fill(writer.next(0)); fill(writer.next(1)); writer.append();
///   writer.add_item(writer.rows() - 4, 4);      // the last four steps
///   if (auto insertion = writer.take()) shard.insert(insertion, …);
class Writer {
public:
  /// Throws std::invalid_argument on a signature or an option out of range.
  Writer(const Signature& signature, std::uint64_t writer_id, const WriterOptions& options = {});

  /// Where a column of the coming step is written, aligned to its elements; the same memory until
  /// append(). What is not written is undefined.
  std::span<std::byte> next(std::size_t column);

  /// The row of next() is a step now. `flags`: Chunk::Flag.
  void append(std::uint8_t flags = 0);

  std::int64_t rows() const { return end_; } // the number of the row to come
  /// How many of the newest rows items may lie in: all of them, at most `reach`.
  std::int64_t kept_rows() const { return std::min(reach_, end_ - begin_); }

  /// A column of one of the newest `reach` rows. Throws std::out_of_range on others.
  std::span<const std::byte> at(std::int64_t row, std::size_t column) const;

  /// The same to be written anew, of a row that no insertion has named yet: nobody has seen it.
  /// Throws std::out_of_range on others.
  std::span<std::byte> rewrite(std::int64_t row, std::size_t column);

  /// An item of rows [first, first + count), the first `history` of them older than what it is
  /// about, all of the newest `reach`. Throws std::invalid_argument on others, on a shape that does
  /// not fit and on a priority that is not 0 to kMaxPriority.
  void add_item(std::int64_t first, std::int64_t count, std::uint32_t history = 0,
                ShapePtr shape = nullptr, double priority = 1);

  std::int64_t pending_items() const { return static_cast<std::int64_t>(items_.size()); }

  /// All items since the last take(), which may not lie in rows from `before` on, and the new rows
  /// before that; the others may still be written anew. nullptr when there is no item.
  InsertionPtr take(std::int64_t before = std::numeric_limits<std::int64_t>::max());

  const RowLayout& layout() const { return *layout_; }

  /// The newest `reach` rows and the items not yet taken, appended to `out`. load_state(), on a
  /// writer of the same signature and options, reads them back into chunks of its own and returns
  /// what is left; items made afterwards have the same content, keys and sequence numbers. Throws
  /// std::runtime_error on bytes that are not such a state (the writer is unchanged then).
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  friend struct WriterState;
  void new_chunk();
  void close_chunks();
  const std::shared_ptr<Chunk>& chunk_of(std::int64_t row) const;
  void check_kept(std::int64_t row, std::int64_t least) const;

  std::shared_ptr<const RowLayout> layout_;
  std::uint64_t writer_id_;
  std::int64_t capacity_; // rows of a chunk
  std::int64_t reach_;
  std::shared_ptr<Chunk> current_;
  std::vector<std::shared_ptr<Chunk>> recent_; // those the newest rows lie in, current_ last
  std::int64_t filled_ = 0;                    // rows of current_
  std::int64_t end_ = 0;                       // row to come; row r lies in chunk r / capacity_
  std::int64_t begin_ = 0;                     // the oldest row there ever was
  std::int64_t named_ = 0;                     // rows before it have been named by an insertion
  std::int64_t taken_ = 0;                     // and before this, or are in full_rows_
  std::vector<ChunkRows> full_rows_;           // not yet taken, of chunks before current_
  std::vector<ChunkPtr> closed_;               // since the last take(): no longer in recent_
  std::vector<Item> items_;
  std::uint64_t next_item_ = 0;
  std::uint64_t sequence_ = 0;
};

/// Turns the time steps of one environment into n-step transitions. The frame is rendered into
/// next_frame(), that is, into its place in the chunk. As a Writer otherwise.
///
///   render(writer.next_frame()); writer.begin();
///   for (;;) { …; render(writer.next_frame()); writer.append(action, reward, discount, last); }
class TransitionWriter {
public:
  /// `chunk_steps`: rows per chunk; 0: chosen from the frame size. `priority`: of each item; 1
  /// without it. Throws std::invalid_argument on a spec or a size out of range.
  TransitionWriter(const TransitionSpec& spec, std::uint64_t writer_id, int chunk_steps = 0,
                   ItemPriority priority = {});

  /// spec.frame.bytes() bytes, 16-byte aligned, where the frame of the coming step is written; the
  /// same memory until begin() or append(), which make it a step.
  std::span<std::byte> next_frame() { return writer_.next(kFrame); }

  /// next_frame() holds the first frame of an episode. An episode left off without a last step
  /// gives no items for its final n_step - 1 steps.
  void begin();

  /// next_frame() holds the frame after `action` (spec.action_size floats). Throws
  /// std::logic_error outside an episode, std::invalid_argument on an action of another size.
  void append(std::span<const float> action, float reward, float discount, bool last);

  std::int64_t pending_items() const { return writer_.pending_items(); }
  InsertionPtr take() { return writer_.take(); }

  /// As Writer's, with the open episode.
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void finish_row(std::span<const float> action, float reward, float discount, std::uint8_t flags);
  void add_item(std::int64_t start, std::int64_t steps);
  ShapePtr shape(std::uint32_t history, std::uint32_t steps);

  TransitionSpec spec_;
  ItemPriority priority_;
  Writer writer_;
  std::int64_t episode_step_ = -1; // of the newest row; -1: outside an episode
  std::map<std::pair<std::uint32_t, std::uint32_t>, ShapePtr> shapes_; // by history and steps
};

} // namespace troupe::replay
