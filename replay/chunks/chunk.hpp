#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/chunks/column_codec.hpp"
#include "replay/chunks/signature.hpp"
#include "replay/storage/segment_store.hpp"

namespace troupe::replay {

/// Rows [low, high) of a chunk.
struct ChunkRange {
  std::shared_ptr<const RowLayout> layout;
  std::uint64_t id = 0;
  std::uint32_t capacity = 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

/// A block of rows (time steps) of one writer, allocated once. The writer fills it row by row. A
/// row that belongs to an Insertion never changes again, so any thread may read it without a lock.
/// A table may replace a chunk with an encoded one, in memory or on disk, which has decode()
/// instead of row().
class Chunk {
public:
  enum Flag : std::uint8_t { kFirst = 1, kLast = 2 }; // first and last row of an episode

  Chunk(std::shared_ptr<const RowLayout> layout, std::uint64_t id, std::uint32_t capacity);

  /// Encodes rows [low, high) of a raw chunk, column by column, with `plans`.
  Chunk(const Chunk& raw, std::uint32_t low, std::uint32_t high, std::span<const ColumnPlan> plans,
        CodecScratch& scratch);

  /// Reads encoded rows from the output of packed(). Throws std::runtime_error on other bytes.
  Chunk(const ChunkRange& range, std::span<const std::byte> packed);

  /// Represents encoded rows whose bytes stay in `store`. The destructor releases `ref`.
  Chunk(const ChunkRange& range, std::shared_ptr<SegmentStore> store, const BlobRef& ref);

  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  bool encoded() const { return data_ == nullptr; } // in memory or on disk
  bool on_disk() const { return store_ != nullptr; }
  const SegmentStore* store() const { return store_.get(); } // null: in memory
  const BlobRef& ref() const { return ref_; }                // of a chunk on disk

  /// Writes rows [first, first + count) of a raw or encoded chunk to `out`, in the layout of a raw
  /// chunk. Throws std::out_of_range if an encoded chunk lacks them, StorageError if the disk
  /// fails.
  void decode(std::uint32_t first, std::uint32_t count, std::byte* out,
              CodecScratch& scratch) const;

  /// Returns the flags of the rows of an encoded chunk.
  std::vector<std::uint8_t> encoded_flags() const;

  /// Returns the rows of an encoded chunk in the file format: [columns u32][rows u32][bytes of each
  /// column u64], the flags of the rows, the bytes of the columns; little endian. Throws
  /// StorageError if the disk fails.
  std::vector<std::byte> packed() const;

  ChunkRange range(std::uint32_t low, std::uint32_t high) const {
    return {layout_, id_, capacity_, low, high};
  }
  std::uint64_t id() const { return id_; } // increases from chunk to chunk of a writer
  std::uint32_t capacity() const { return capacity_; }
  const RowLayout& layout() const { return *layout_; }
  const std::shared_ptr<const RowLayout>& shared_layout() const { return layout_; }
  std::size_t bytes() const; // all memory of the chunk

  // For raw chunks only:
  const std::byte* row(std::size_t i) const { return data_.get() + i * row_bytes_; }
  std::byte* row(std::size_t i) { return data_.get() + i * row_bytes_; }
  std::uint8_t flags(std::size_t i) const { return raw_flags_[i]; }
  const std::uint8_t* flags() const { return raw_flags_.get(); }
  std::uint8_t* flags() { return raw_flags_.get(); }

private:
  struct Free {
    void operator()(void* memory) const;
  };
  void unpack(std::span<const std::byte> packed, std::vector<std::uint8_t>& flags,
              std::vector<EncodedColumn>& columns) const;

  std::uint64_t id_;
  std::uint32_t capacity_;
  std::size_t row_bytes_;
  std::shared_ptr<const RowLayout> layout_;
  std::unique_ptr<std::byte[], Free> data_;
  std::unique_ptr<std::uint8_t[], Free> raw_flags_; // one per row of a raw chunk
  std::vector<std::uint8_t> flags_;                 // one per row of columns_
  std::vector<EncodedColumn> columns_;
  std::uint32_t low_ = 0; // an encoded chunk contains rows [low_, high_)
  std::uint32_t high_ = 0;
  std::shared_ptr<SegmentStore> store_;
  BlobRef ref_;
};
using ChunkPtr = std::shared_ptr<const Chunk>;

/// Encodes chunks of one signature and from time to time chooses new plans for their columns. Used
/// by one thread at a time.
class ChunkEncoder {
public:
  explicit ChunkEncoder(Compression compression) : compression_(compression) {}

  /// Encodes rows [low, high) of a raw chunk.
  std::shared_ptr<Chunk> encode(const Chunk& raw, std::uint32_t low, std::uint32_t high);

  /// Decodes rows [low, high) of an encoded chunk.
  std::shared_ptr<Chunk> decode(const Chunk& encoded, std::uint32_t low, std::uint32_t high);

private:
  Compression compression_;
  std::int64_t encoded_ = 0; // number of chunks encoded so far
  std::vector<ColumnPlan> plans_;
  CodecScratch scratch_;
};

} // namespace troupe::replay
