#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "env/spec.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace troupe::replay {

/// `packed` is for pictures of at least 4 KiB (picture_pack.hpp): decodes several times faster than
/// `zstd` and needs up to twice the bytes; it leaves other columns as they are. lz4 and zstd
/// compress pictures after packing them. `automatic` lets plan_column() decide.
enum class Compression : std::uint8_t { none, packed, lz4, zstd, automatic };

/// One row (time step) of one column of a chunk. Pictures give the distance of two lines and of two
/// channels, so that a pixel can be predicted from its neighbours; for other columns these are 0.
struct ColumnShape {
  std::size_t element_bytes = 1; // 1, 2, 4 or 8
  std::size_t row_bytes = 0;     // 0 to kMostRowBytes, a multiple of element_bytes
  std::size_t line_bytes = 0;    // divides plane_bytes
  std::size_t plane_bytes = 0;   // divides row_bytes; 0 if and only if line_bytes is

  bool operator==(const ColumnShape&) const = default;
};
inline constexpr std::size_t kMostRowBytes = std::size_t{1} << 30;

/// uint8 [channels, height, width] is a picture; everything else is a sequence of elements.
ColumnShape column_shape(const env::ArraySpec& array);

/// How the rows of a column are encoded: the transforms of their bytes, then a compressor.
struct ColumnPlan {
  Compression compression = Compression::none; // not `automatic`
  bool delta = false;                          // rows are replaced by differences to the row before
  bool shuffle = false; // the first bytes of all elements, then the second bytes, …
  bool operator==(const ColumnPlan&) const = default;
};

/// Memory that encoding and decoding reuse; one per thread. After the first call for a shape,
/// EncodedColumn::decode() does not allocate.
class CodecScratch {
public:
  CodecScratch();
  ~CodecScratch();
  CodecScratch(CodecScratch&&) noexcept;
  CodecScratch& operator=(CodecScratch&&) noexcept;

private:
  friend class EncodedColumn;
  struct State;
  std::unique_ptr<State> state_;
};

/// Rows that are `stride` bytes apart.
struct ColumnRows {
  const std::byte* first = nullptr;
  std::size_t stride = 0; // at least row_bytes
  std::size_t count = 0;  // at most kMostColumnRows
};
inline constexpr std::size_t kMostColumnRows = std::size_t{1} << 20;

/// The plan for rows like these. It depends only on sizes: the same rows give the same plan
/// everywhere. Takes the first of packed, lz4 and zstd that needs at most a quarter more bytes than
/// the best of them; `none` if that is more than 80 % of the rows. With a `wanted` other than
/// `automatic` only chooses delta and shuffle.
ColumnPlan plan_column(const ColumnShape& shape, const ColumnRows& rows, Compression wanted,
                       CodecScratch& scratch);

struct KeyGroup;

/// The rows of one column of a full chunk, encoded once and decoded often, in windows. Small rows
/// are compressed together, up to 16 KiB. Each large row (4 KiB and more) is compressed alone, as
/// the difference to its neighbour towards the key row in the middle of its group of about
/// kKeyRows: decoding a window decodes its rows and those between it and the key. Immutable; any
/// number of threads may decode, each with its own scratch.
class EncodedColumn {
public:
  static constexpr std::size_t kKeyRows = 16;

  EncodedColumn() = default; // no rows

  /// Stores rows that the plan does not shrink as they are. Throws std::invalid_argument naming the
  /// field if a shape, count or stride is out of range.
  static EncodedColumn encode(const ColumnShape& shape, const ColumnRows& rows,
                              const ColumnPlan& plan, CodecScratch& scratch);

  /// Uses the plan of plan_column() for these rows.
  static EncodedColumn encode(const ColumnShape& shape, const ColumnRows& rows, Compression wanted,
                              CodecScratch& scratch);

  /// Reads the bytes of serialized(). Throws std::runtime_error if they are of another version or
  /// shape, have more than `most_rows` rows, or have damaged lengths. There is no checksum: the
  /// file that contains them has one.
  static EncodedColumn parse(std::span<const std::byte> bytes, const ColumnShape& shape,
                             std::size_t most_rows);

  const ColumnShape& shape() const { return shape_; }
  std::size_t rows() const { return rows_; }
  std::size_t bytes() const { return sizeof *this + bytes_.size(); } // of memory
  Compression compression() const { return compression_; }

  /// Writes rows [first, first + count) to `out`, `stride` (at least row_bytes) bytes apart, and
  /// leaves the bytes between them alone. Reads written rows again to decode later ones. Throws
  /// std::out_of_range if there are no such rows, std::runtime_error if the bytes are damaged
  /// (`out` is undefined then); never reads or writes beyond its buffers.
  void decode(std::size_t first, std::size_t count, std::byte* out, std::size_t stride,
              CodecScratch& scratch) const;

  // clang-format off
  /// Little endian: [magic u32][version, compression, element bytes, 0: u8]
  /// [rows, row bytes, line bytes, plane bytes, rows per block, groups: u32], the end of each block
  /// (u32, relative to the first block), the blocks. A block is [transform u8][compressed bytes];
  /// without compression there are no blocks and the rows follow the header.
  // clang-format on
  std::span<const std::byte> serialized() const { return bytes_; }

private:
  class Blocks;
  struct Window { // rows [first, end) and their destination
    std::size_t first = 0;
    std::size_t end = 0;
    std::byte* out = nullptr;
    std::size_t stride = 0;
    std::byte* row(std::size_t i) const { return out + (i - first) * stride; }
  };

  void read_header(std::span<const std::byte> bytes);
  void check_blocks(std::span<const std::byte> body) const;
  void write_header();
  std::size_t blocks() const;
  std::size_t block_rows(std::size_t block) const;
  void decode_block(std::size_t block, const std::byte* before, std::byte* out,
                    CodecScratch::State& scratch) const;
  void decode_blocks(const Window& window, CodecScratch::State& scratch) const;
  void decode_group(const KeyGroup& group, const Window& window,
                    CodecScratch::State& scratch) const;

  ColumnShape shape_;
  std::size_t rows_ = 0;
  Compression compression_ = Compression::none;
  std::uint32_t rows_per_block_ = 0; // 0 without compression
  std::uint32_t groups_ = 0;         // 0: every block stands alone
  std::vector<std::byte> bytes_;
};

} // namespace troupe::replay
