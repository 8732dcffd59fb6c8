#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/chunks/insertion.hpp"
#include "replay/table/table_items.hpp"

namespace troupe::replay {

/// The chunks that contain the items of a table. Counts their bytes, encodes full chunks and, with
/// a store, moves the oldest ones to disk. A chunk is removed with the last item that covers it.
class TableChunks {
public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  struct Held {
    ChunkPtr chunk;
    std::uint32_t items = 0; // number of windows that cover it
    std::uint32_t low = 0;   // items cover the rows [low, high)
    std::uint32_t high = 0;
    // The neighbouring chunks of the same writer, if an item spans both
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    std::uint64_t number = 0; // increases from chunk to chunk
    bool closed = false;      // no later item will cover it
  };

  explicit TableChunks(Compression compression)
      : compression_(compression), encoder_(compression) {}

  /// Adds an item with this shape number: holds its chunks and returns its window.
  ItemWindow cover(const Item& item, std::uint32_t shape);
  void release(const ItemWindow& window);

  /// Called after the last cover() of an insertion. Later insertions do not refer to the `closed`
  /// chunks. Encodes at most one chunk more than the insertion added; the remaining ones are
  /// encoded by later calls.
  void finish_insertion(std::span<const ChunkPtr> closed);

  /// Points `item` at the rows of a window. Does not allocate for windows of up to two chunks.
  void locate(const ItemWindow& window, Item& item) const {
    const Held* held = &held_[window.chunk];
    const std::uint32_t end = window.begin + window.rows;
    const std::uint32_t capacity = held->chunk->capacity();
    item.chunks.resize(end <= capacity ? 1 : (end - 1) / capacity + 1);
    item.chunks.set(0, held->chunk);
    for (std::size_t i = 1; i < item.chunks.size(); ++i) {
      held = &held_[held->next];
      item.chunks.set(i, held->chunk);
    }
    item.begin = window.begin;
    item.rows = window.rows;
    item.history = window.history;
  }

  /// Calls `visit` with the index of each chunk that a window spans, in order.
  template <typename Visit>
  void for_each(const ItemWindow& window, Visit visit) const {
    std::uint32_t index = window.chunk;
    const std::uint32_t capacity = held_[index].chunk->capacity();
    for (std::uint32_t left = (window.begin + window.rows - 1) / capacity + 1; left > 0; --left) {
      const std::uint32_t next = held_[index].next; // `visit` may release the chunk
      visit(index);
      index = next;
    }
  }
  const std::vector<Held>& held() const { return held_; } // by index; free entries have no chunk

  /// From now on spill_oldest() appends to this store, which must not be shared with another table.
  void spill_to(std::shared_ptr<SegmentStore> store);
  const std::shared_ptr<SegmentStore>& store() const { return store_; }

  enum class Spilled : std::uint8_t { one, nothing, failed };
  /// Moves the oldest chunk that no writer uses to disk. Returns `nothing` if there is no such
  /// chunk, and `failed` if there is no store or its disk is full or fails. After a failure it does
  /// not try again until fewer bytes are on disk or retry_disk() is called.
  Spilled spill_oldest();
  void retry_disk() { failed_at_ = -1; }

  std::int64_t bytes() const { return bytes_; } // in memory
  std::int64_t encoded() const { return encoded_; }
  std::int64_t on_disk() const { return static_cast<std::int64_t>(on_disk_.size()); }
  std::int64_t disk_bytes() const { return disk_bytes_; }
  std::int64_t failed_spills() const { return failed_spills_; }
  const std::string& spill_error() const { return spill_error_; } // the last one; "": none
  std::uint64_t next_number() const { return next_number_; }

  /// Fills an empty object. Chunks on disk must be in store().
  void restore(std::vector<Held> held, std::uint64_t next_number);

private:
  using BlobPosition = std::pair<std::uint64_t, std::uint64_t>; // segment, offset

  std::uint32_t hold(const ChunkPtr& chunk, std::uint32_t low, std::uint32_t high);
  std::uint32_t cover_rows(const ChunkPtr& chunk, std::uint32_t low, std::uint32_t high);
  void release_chunk(std::uint32_t index);
  bool is_unused(const Held& held) const { // no writer will add items to it
    return held.closed || held.chunk.use_count() == 1;
  }
  void count(const Chunk& chunk, int sign);
  void replace(std::uint32_t index, ChunkPtr chunk);
  void encode_some(std::size_t added);
  bool lies_in_store(const Chunk& chunk) const { return store_ && chunk.store() == store_.get(); }
  bool spill(std::uint32_t index);
  void compact(std::uint64_t bytes);

  Compression compression_;
  ChunkEncoder encoder_;
  std::vector<Held> held_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<const Chunk*, std::uint32_t> index_of_;
  std::uint32_t newest_ = 0;  // index of the chunk covered last
  std::size_t added_raw_ = 0; // number of chunks to be encoded that this insertion added
  // Oldest first. The pointer shows whether the chunk was replaced or released meanwhile.
  std::deque<std::pair<std::uint32_t, const Chunk*>> raw_;     // to be encoded
  std::deque<std::pair<std::uint32_t, const Chunk*>> to_disk_; // in memory; with a store
  std::shared_ptr<SegmentStore> store_;
  std::map<BlobPosition, std::uint32_t> on_disk_;
  std::uint64_t next_number_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t encoded_ = 0;
  std::int64_t disk_bytes_ = 0;
  std::int64_t failed_spills_ = 0;
  std::int64_t failed_at_ = -1; // disk_bytes_ at the last failure
  std::string spill_error_;
};

} // namespace troupe::replay
