#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/insertion.hpp"
#include "replay/spec.hpp"

namespace troupe::replay {

/// Turns the time steps of one environment into items. The frame is rendered into next_frame(),
/// that is, into its place in the chunk. One thread; items it has given out may be read by others
/// meanwhile.
///
///   render(writer.next_frame()); writer.begin();
///   for (;;) { …; render(writer.next_frame()); writer.append(action, reward, discount, last); }
///   if (auto insertion = writer.take()) shard.insert(insertion, …);
class TransitionWriter {
public:
  /// `chunk_steps`: rows per chunk, at least stack + n_step; 0: chosen from the frame size. Throws
  /// std::invalid_argument on a spec or a size out of range.
  TransitionWriter(const TransitionSpec& spec, std::uint64_t writer_id, int chunk_steps = 0);

  /// spec.frame.bytes() bytes, 16-byte aligned, where the frame of the coming step is written; the
  /// same memory until begin() or append(), which make it a step.
  std::span<std::byte> next_frame();

  /// next_frame() holds the first frame of an episode. An episode left off without a last step
  /// gives no items for its final n_step - 1 steps.
  void begin();

  /// next_frame() holds the frame after `action` (spec.action_size floats). Throws
  /// std::logic_error outside an episode, std::invalid_argument on an action of another size.
  void append(std::span<const float> action, float reward, float discount, bool last);

  std::int64_t pending_items() const { return static_cast<std::int64_t>(items_.size()); }

  /// Everything since the last take(); nullptr when there is no item.
  InsertionPtr take();

  /// The open episode and the items not yet taken, appended to `out`. load_state(), on a writer of
  /// the same spec, reads them back into chunks of its own and returns what is left; items made
  /// afterwards have the same content, keys and sequence numbers. Throws std::runtime_error on
  /// bytes that are not such a state (the writer is unchanged then).
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  struct Place {
    std::shared_ptr<Chunk> chunk;
    std::uint32_t row = 0;
  };

  void finish_row(std::span<const float> action, float reward, float discount, std::uint8_t flags);
  void add_item(std::int64_t start, std::int64_t steps);
  void new_chunk();

  TransitionSpec spec_;
  RowLayout layout_;
  std::uint64_t writer_id_;
  std::uint32_t capacity_;
  std::shared_ptr<Chunk> previous_; // full
  std::shared_ptr<Chunk> current_;
  std::uint32_t filled_ = 0;         // rows of current_
  std::uint32_t taken_ = 0;          // rows of current_ that an insertion has named
  std::vector<ChunkRows> full_rows_; // not yet taken, of chunks before current_
  std::vector<Item> items_;
  std::int64_t episode_step_ = -1; // of the newest row; -1: outside an episode
  std::uint64_t next_chunk_ = 0;
  std::uint64_t next_item_ = 0;
  std::uint64_t sequence_ = 0;
};

} // namespace troupe::replay
