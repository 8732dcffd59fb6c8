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

/// `packed` is for pictures of at least 4 KiB (picture_pack.hpp): it decodes several times faster
/// than `zstd`, needs up to twice the bytes, and leaves other columns unchanged. `lz4` and `zstd`
/// compress pictures after packing them. With `automatic`, plan_column() decides.
enum class Compression : std::uint8_t { none, packed, lz4, zstd, automatic };

/// The shape of one row (time step) of a column. For pictures it includes the distances between
/// lines and between channels, so that a pixel can be predicted from its neighbours; for other
/// columns these are 0. Shapes are not checked: column_shape() makes them.
struct ColumnShape {
  std::size_t element_bytes = 1; // 1, 2, 4 or 8
  std::size_t row_bytes = 0;     // a multiple of element_bytes
  std::size_t line_bytes = 0;    // divides plane_bytes
  std::size_t plane_bytes = 0;   // divides row_bytes; 0 if and only if line_bytes is

  bool operator==(const ColumnShape&) const = default;
};

/// Returns the shape of a column: uint8 [channels, height, width] is a picture, everything else is
/// a sequence of elements.
ColumnShape column_shape(const env::ArraySpec& array);

/// How the rows of a column are encoded: their bytes are transformed and then compressed.
struct ColumnPlan {
  Compression compression = Compression::none; // not `automatic`
  bool delta = false;   // each row is replaced by its difference from the previous one
  bool shuffle = false; // the first bytes of all elements, then the second bytes, …
  bool operator==(const ColumnPlan&) const = default;
};

/// Memory that encoding and decoding reuse. Each thread needs a separate one. After the first call
/// for a shape, EncodedColumn::decode() does not allocate.
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

/// Returns a plan for rows like these. It depends only on encoded sizes, so the same rows give the
/// same plan on every machine. Chooses the first of packed, lz4 and zstd that needs at most a
/// quarter more bytes than the best of them, or `none` if that is more than 80 % of the raw size.
/// If `wanted` is not `automatic`, it only chooses delta and shuffle.
ColumnPlan plan_column(const ColumnShape& shape, const ColumnRows& rows, Compression wanted,
                       CodecScratch& scratch);

struct KeyGroup;

/// The rows of one column of a full chunk, encoded once and decoded often, in windows. Small rows
/// are compressed together, up to 16 KiB. Large rows (4 KiB and more) are compressed one by one.
/// They form groups of about kKeyRows rows with a key row in the middle, and each row is stored as
/// the difference from its neighbour on the side of the key. Decoding a window therefore decodes
/// its rows and the rows between it and the key. Immutable; any number of threads may decode, each
/// with a separate scratch.
class EncodedColumn {
public:
  static constexpr std::size_t kKeyRows = 16;

  EncodedColumn() = default; // no rows

  /// Encodes rows with a plan; if it does not shrink them, they are stored unencoded. Throws
  /// std::invalid_argument if there are more than kMostColumnRows.
  static EncodedColumn encode(const ColumnShape& shape, const ColumnRows& rows,
                              const ColumnPlan& plan, CodecScratch& scratch);

  /// Reads the output of serialized(). Throws std::runtime_error if the bytes are of another
  /// version or shape, contain more than `most_rows` rows, or have damaged lengths. There is no
  /// checksum here: the file that contains the bytes has one.
  static EncodedColumn parse(std::span<const std::byte> bytes, const ColumnShape& shape,
                             std::size_t most_rows);

  const ColumnShape& shape() const { return shape_; }
  std::size_t rows() const { return rows_; }
  std::size_t bytes() const { return sizeof *this + bytes_.size(); } // memory
  Compression compression() const { return compression_; }

  /// Writes rows [first, first + count) to `out`, `stride` (at least row_bytes) bytes apart, and
  /// leaves the bytes between rows unchanged. Reads `out` again to decode later rows. Throws
  /// std::out_of_range if there are no such rows, and std::runtime_error if the bytes are damaged
  /// (`out` is then undefined). Never reads or writes beyond its buffers.
  void decode(std::size_t first, std::size_t count, std::byte* out, std::size_t stride,
              CodecScratch& scratch) const;

  // clang-format off
  /// Returns the encoded column, little endian:
  ///   [magic u32][version, compression, element bytes, 0: u8]
  ///   [rows, row bytes, line bytes, plane bytes, rows per block, groups: u32]
  ///   the end of each block (u32, relative to the first block), the blocks
  /// A block is [transform u8][compressed bytes]. Without compression there are no blocks, and the
  /// rows follow the header.
  // clang-format on
  std::span<const std::byte> serialized() const { return bytes_; }

private:
  class Blocks;
  struct Window { // rows [first, end) and where to write them
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
  std::uint32_t groups_ = 0;         // 0: blocks are independent
  std::vector<std::byte> bytes_;
};

} // namespace troupe::replay
