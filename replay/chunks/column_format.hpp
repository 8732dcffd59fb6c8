#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/chunks/column_codec.hpp"

/// Internal to the encoding and decoding of columns.
namespace troupe::replay {

struct ColumnHeader {
  static constexpr std::uint32_t kMagic = 0x4c4f4354; // "TCOL"
  static constexpr std::uint8_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint8_t version = kVersion;
  std::uint8_t compression = 0;
  std::uint8_t element_bytes = 0;
  std::uint8_t zero = 0;
  std::uint32_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::uint32_t line_bytes = 0;
  std::uint32_t plane_bytes = 0;
  std::uint32_t rows_per_block = 0;
  std::uint32_t groups = 0;
};
static_assert(sizeof(ColumnHeader) == 32);

// Small rows are compressed together up to this size.
inline constexpr std::size_t kBlockBytes = 16384;
inline constexpr std::size_t kLargeRow = 4096; // from this size on, each row is a block

/// True if rows of this shape are packed by pack_picture().
inline bool packs(const ColumnShape& shape) {
  return shape.plane_bytes != 0 && shape.element_bytes == 1 && shape.row_bytes >= kLargeRow;
}

/// A group of rows around a key row, which is encoded by itself. Every other row is stored as the
/// difference from its neighbour on the side of the key. The key is in the middle, so that no row
/// is far from it. Blocks are in decoding order, in two chains: from the key to the end, and from
/// the row before the key back to the beginning.
struct KeyGroup {
  std::size_t begin = 0;
  std::size_t key = 0;
  std::size_t end = 0;

  std::size_t block(std::size_t row) const {
    return row >= key ? begin + (row - key) : begin + (end - 1 - row);
  }
};
KeyGroup key_group(std::size_t rows, std::size_t groups, std::size_t group);

struct CodecScratch::State {
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> compressor; // created when first needed
  std::unique_ptr<ZSTD_DCtx_s, Free> decompressor;
  std::vector<std::byte> rows, residual, packed, before;

  static std::byte* room(std::vector<std::byte>& buffer, std::size_t size) {
    if (buffer.size() < size)
      buffer.resize(size);
    return buffer.data();
  }

  /// Begins a chain. With zstd, a chain is one stream that is flushed after each block, so that a
  /// block can refer to the tables and bytes of the previous blocks.
  void begin_chain();
  /// Compresses with lz4 or zstd into `packed`.
  std::span<const std::byte> compress(Compression compression, std::span<const std::byte> from,
                                      bool chained);
  /// Returns the number of bytes written to `out`, or a number above `most` if `from` is damaged.
  std::size_t decompress(Compression compression, std::span<const std::byte> from, std::byte* out,
                         std::size_t most, bool chained);

private:
  ZSTD_CCtx_s& writer();
  ZSTD_DCtx_s& reader();
  std::span<const std::byte> compress_next(std::span<const std::byte> from);
  std::size_t decompress_next(std::span<const std::byte> from, std::byte* out, std::size_t most);
};

} // namespace troupe::replay
