#include "replay/column_codec.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include <lz4.h>
#include <zstd.h>

#include "replay/column_transform.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint32_t kMagic = 0x4c4f4354; // "TCOL"
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kBlockBytes = 16384; // small rows are compressed together up to this
constexpr std::size_t kLargeRow = 4096;    // larger rows are blocks of their own
constexpr int kZstdLevel = 1;              // 3 saves 1 % and costs a fifth more
constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();

struct Header {
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
  std::uint32_t blocks_per_key = 0;
};
static_assert(sizeof(Header) == kHeaderBytes);

[[noreturn]] void refuse(const std::string& field, std::size_t value, const std::string& rule) {
  throw std::invalid_argument("column " + field + " is " + std::to_string(value) + "; it must be "
                              + rule);
}

[[noreturn]] void damaged(const std::string& why) {
  throw std::runtime_error("an encoded column is damaged: " + why
                           + "; read it from another copy or checkpoint");
}

void check(const ColumnShape& shape, const ColumnRows& rows) {
  const std::size_t element = shape.element_bytes;
  if (element != 1 && element != 2 && element != 4 && element != 8)
    refuse("element_bytes", element, "1, 2, 4 or 8");
  if (shape.row_bytes > kMostRowBytes || shape.row_bytes % element != 0)
    refuse("row_bytes", shape.row_bytes, "at most 2^30 and a multiple of element_bytes");
  if ((shape.plane_bytes == 0) != (shape.line_bytes == 0)
      || (shape.plane_bytes != 0
          && (shape.row_bytes == 0 || shape.row_bytes % shape.plane_bytes != 0)))
    refuse("plane_bytes", shape.plane_bytes, "a divisor of row_bytes, and 0 where line_bytes is");
  if (shape.line_bytes != 0 && shape.plane_bytes % shape.line_bytes != 0)
    refuse("line_bytes", shape.line_bytes, "a divisor of plane_bytes");
  if (rows.count > kMostColumnRows)
    refuse("rows", rows.count, "at most 2^20");
  if (rows.count > 1 && rows.stride < shape.row_bytes)
    refuse("stride", rows.stride, "at least row_bytes");
}

std::size_t blocks_of(std::size_t rows, std::size_t rows_per_block) {
  return rows_per_block == 0 ? 0 : (rows + rows_per_block - 1) / rows_per_block;
}

} // namespace

struct CodecScratch::State {
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> compressor; // made when first needed
  std::unique_ptr<ZSTD_DCtx_s, Free> decompressor;
  std::vector<std::byte> rows, residual, best, packed, before;

  static std::byte* room(std::vector<std::byte>& buffer, std::size_t size) {
    if (buffer.size() < size)
      buffer.resize(size);
    return buffer.data();
  }

  std::size_t compress(Compression compression, const std::byte* from, std::size_t size) {
    if (compression == Compression::lz4) {
      const int most = LZ4_compressBound(static_cast<int>(size));
      return static_cast<std::size_t>(LZ4_compress_default(
          reinterpret_cast<const char*>(from),
          reinterpret_cast<char*>(room(packed, static_cast<std::size_t>(most))),
          static_cast<int>(size), most));
    }
    if (compressor == nullptr) {
      compressor.reset(ZSTD_createCCtx());
      ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_compressionLevel, kZstdLevel);
      ZSTD_CCtx_setParameter(compressor.get(), ZSTD_c_contentSizeFlag, 0);
    }
    const std::size_t most = ZSTD_compressBound(size);
    const std::size_t written =
        ZSTD_compress2(compressor.get(), room(packed, most), most, from, size);
    if (ZSTD_isError(written) != 0)
      throw std::runtime_error(std::string("a column could not be compressed: zstd: ")
                               + ZSTD_getErrorName(written));
    return written;
  }

  bool decompress(Compression compression, std::span<const std::byte> from, std::byte* out,
                  std::size_t size) {
    if (compression == Compression::lz4)
      return LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()),
                                 reinterpret_cast<char*>(out), static_cast<int>(from.size()),
                                 static_cast<int>(size))
             == static_cast<int>(size);
    if (decompressor == nullptr)
      decompressor.reset(ZSTD_createDCtx());
    return ZSTD_decompressDCtx(decompressor.get(), out, size, from.data(), from.size()) == size;
  }
};

CodecScratch::CodecScratch() : state_(std::make_unique<State>()) {}
CodecScratch::~CodecScratch() = default;
CodecScratch::CodecScratch(CodecScratch&&) noexcept = default;
CodecScratch& CodecScratch::operator=(CodecScratch&&) noexcept = default;

ColumnShape column_shape(const env::ArraySpec& array) {
  ColumnShape shape{.element_bytes = env::element_bytes(array.type), .row_bytes = array.bytes()};
  if (shape.element_bytes == 1 && array.shape.size() == 3 && shape.row_bytes != 0) {
    shape.line_bytes = static_cast<std::size_t>(array.shape[2]);
    shape.plane_bytes = shape.line_bytes * static_cast<std::size_t>(array.shape[1]);
  }
  return shape;
}

/// Makes the blocks of one column.
class EncodedColumn::Blocks {
public:
  Blocks(const ColumnShape& shape, const ColumnRows& rows, const ColumnPlan& plan,
         CodecScratch::State& scratch)
      : shape_(shape), rows_(rows), plan_(plan), scratch_(scratch) {}

  /// The encoded blocks of `column`, whose rows per block are set, after its header; false when
  /// they are no smaller than the rows.
  bool append_to(EncodedColumn& column) {
    const std::size_t blocks = blocks_of(rows_.count, column.rows_per_block_);
    const std::size_t index = column.bytes_.size();
    const std::size_t begin = index + blocks * sizeof(std::uint32_t);
    const std::size_t raw = rows_.count * shape_.row_bytes;
    column.bytes_.resize(begin);
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::byte* before =
          block % column.blocks_per_key_ == 0 ? nullptr : row(block * column.rows_per_block_ - 1);
      append_block(block * column.rows_per_block_, column.block_rows(block), before, column.bytes_);
      const std::size_t end = column.bytes_.size() - begin;
      if (column.bytes_.size() >= kHeaderBytes + raw
          || end > std::numeric_limits<std::uint32_t>::max())
        return false;
      const auto end32 = static_cast<std::uint32_t>(end);
      std::memcpy(column.bytes_.data() + index + block * sizeof end32, &end32, sizeof end32);
    }
    return true;
  }

private:
  const std::byte* row(std::size_t i) const { return rows_.first + i * rows_.stride; }

  void append_block(std::size_t first, std::size_t count, const std::byte* before,
                    std::vector<std::byte>& out) {
    const std::size_t size = count * shape_.row_bytes;
    const std::byte* rows = row(first);
    if (count > 1) {
      std::byte* together = scratch_.room(scratch_.rows, size);
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(together + i * shape_.row_bytes, row(first + i), shape_.row_bytes);
      rows = together;
    }
    scratch_.room(scratch_.best, size);
    const std::uint8_t transform = transformed(rows, count, before);
    const std::size_t packed = scratch_.compress(plan_.compression, scratch_.best.data(), size);
    out.push_back(std::byte{transform});
    out.insert(out.end(), scratch_.packed.data(), scratch_.packed.data() + packed);
  }

  /// Leaves the transformed rows in scratch_.best.
  std::uint8_t transformed(const std::byte* rows, std::size_t count, const std::byte* before) {
    if (shape_.plane_bytes == 0) {
      const auto transform =
          static_cast<std::uint8_t>((plan_.delta ? kTime : 0) | (plan_.shuffle ? kShuffle : 0));
      apply_transform(shape_, transform, before, rows, count, scratch_.best.data());
      return transform;
    }
    constexpr std::uint8_t kFirst[] = {kChannel | kLine, kLine, 0};
    constexpr std::uint8_t kLater[] = {kTime | kChannel, kTime, kTime | kChannel | kLine,
                                       kChannel | kLine};
    std::uint8_t best = 0;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    const std::size_t size = count * shape_.row_bytes;
    scratch_.room(scratch_.residual, size);
    for (const std::uint8_t transform : before == nullptr && count == 1
                                            ? std::span<const std::uint8_t>(kFirst)
                                            : std::span<const std::uint8_t>(kLater)) {
      apply_transform(shape_, transform, before, rows, count, scratch_.residual.data());
      const std::uint64_t left = residual_size(scratch_.residual.data(), size);
      if (left < least) {
        least = left;
        best = transform;
        std::swap(scratch_.residual, scratch_.best);
        scratch_.room(scratch_.residual, size);
      }
    }
    return best;
  }

  const ColumnShape& shape_;
  const ColumnRows& rows_;
  const ColumnPlan& plan_;
  CodecScratch::State& scratch_;
};

EncodedColumn EncodedColumn::encode(const ColumnShape& shape, const ColumnRows& rows,
                                    const ColumnPlan& plan, CodecScratch& scratch) {
  check(shape, rows);
  if (plan.compression > Compression::zstd)
    throw std::invalid_argument("column compression of a plan must be none, lz4 or zstd; "
                                "plan_column() decides what `automatic` is");
  EncodedColumn column;
  column.shape_ = shape;
  column.rows_ = rows.count;
  if (rows.count == 0 || shape.row_bytes == 0)
    column.compression_ = Compression::none;
  else
    column.compression_ = plan.compression;
  const auto write_header = [&column] {
    const Header header{.compression = static_cast<std::uint8_t>(column.compression_),
                        .element_bytes = static_cast<std::uint8_t>(column.shape_.element_bytes),
                        .rows = static_cast<std::uint32_t>(column.rows_),
                        .row_bytes = static_cast<std::uint32_t>(column.shape_.row_bytes),
                        .line_bytes = static_cast<std::uint32_t>(column.shape_.line_bytes),
                        .plane_bytes = static_cast<std::uint32_t>(column.shape_.plane_bytes),
                        .rows_per_block = column.rows_per_block_,
                        .blocks_per_key = column.blocks_per_key_};
    column.bytes_.assign(sizeof header, std::byte{});
    std::memcpy(column.bytes_.data(), &header, sizeof header);
  };
  if (column.compression_ != Compression::none) {
    const bool large = shape.row_bytes >= kLargeRow;
    column.rows_per_block_ =
        static_cast<std::uint32_t>(large ? 1 : std::min(rows.count, kBlockBytes / shape.row_bytes));
    column.blocks_per_key_ = large ? static_cast<std::uint32_t>(kKeyRows) : 1;
    write_header();
    if (Blocks(shape, rows, plan, *scratch.state_).append_to(column)) {
      column.bytes_.shrink_to_fit();
      return column;
    }
    column.compression_ = Compression::none;
    column.rows_per_block_ = column.blocks_per_key_ = 0;
  }
  write_header();
  column.bytes_.resize(kHeaderBytes + rows.count * shape.row_bytes);
  column.bytes_.shrink_to_fit();
  for (std::size_t i = 0; i < rows.count && shape.row_bytes != 0; ++i)
    std::memcpy(column.bytes_.data() + kHeaderBytes + i * shape.row_bytes,
                rows.first + i * rows.stride, shape.row_bytes);
  return column;
}

EncodedColumn EncodedColumn::encode(const ColumnShape& shape, const ColumnRows& rows,
                                    Compression wanted, CodecScratch& scratch) {
  return encode(shape, rows, plan_column(shape, rows, wanted, scratch), scratch);
}

ColumnPlan plan_column(const ColumnShape& shape, const ColumnRows& rows, Compression wanted,
                       CodecScratch& scratch) {
  check(shape, rows);
  const std::size_t raw = rows.count * shape.row_bytes;
  if (wanted == Compression::none || raw == 0)
    return {};
  std::size_t least[2] = {kNoPlace, kNoPlace};
  ColumnPlan plans[2];
  for (const Compression compression : {Compression::lz4, Compression::zstd})
    for (const bool delta : {false, true})
      for (const bool shuffle : {false, true}) {
        if ((wanted != Compression::automatic && wanted != compression)
            || (shape.plane_bytes != 0 && (delta || shuffle)) // pictures find out row by row
            || (shuffle && shape.element_bytes == 1))
          continue;
        const ColumnPlan plan{compression, delta, shuffle};
        const std::size_t size =
            EncodedColumn::encode(shape, rows, plan, scratch).serialized().size();
        const std::size_t which = compression == Compression::zstd ? 1 : 0;
        if (size < least[which]) {
          least[which] = size;
          plans[which] = plan;
        }
      }
  if (wanted != Compression::automatic)
    return plans[wanted == Compression::zstd ? 1 : 0];
  const std::size_t chosen = least[0] <= least[1] + least[1] / 4 ? 0 : 1;
  return least[chosen] * 5 <= raw * 4 ? plans[chosen] : ColumnPlan{};
}

EncodedColumn EncodedColumn::parse(std::span<const std::byte> bytes, const ColumnShape& shape,
                                   std::size_t most_rows) {
  check(shape, {.count = 0});
  EncodedColumn column;
  if (bytes.size() < kHeaderBytes)
    damaged(std::to_string(bytes.size()) + " bytes are no header");
  column.bytes_.assign(bytes.begin(), bytes.end());
  column.read_header();
  if (!(column.shape_ == shape))
    throw std::runtime_error("an encoded column has rows of "
                             + std::to_string(column.shape_.row_bytes)
                             + " bytes in another shape than the " + std::to_string(shape.row_bytes)
                             + " bytes expected; it belongs to another table");
  if (column.rows_ > std::min(most_rows, kMostColumnRows))
    damaged("it claims " + std::to_string(column.rows_) + " rows of at most "
            + std::to_string(std::min(most_rows, kMostColumnRows)));
  if (column.compression_ == Compression::none) {
    if (column.rows_per_block_ != 0 || column.blocks_per_key_ != 0
        || bytes.size() != kHeaderBytes + column.rows_ * shape.row_bytes)
      damaged("its length is not that of its rows");
    return column;
  }
  if (column.rows_ == 0 || shape.row_bytes == 0 || column.rows_per_block_ == 0
      || column.blocks_per_key_ == 0
      || (column.rows_per_block_ > 1
          && (column.blocks_per_key_ > 1
              || column.rows_per_block_ > kBlockBytes / shape.row_bytes)))
    damaged("its blocks have impossible sizes");
  const std::size_t blocks = blocks_of(column.rows_, column.rows_per_block_);
  if ((bytes.size() - kHeaderBytes) / sizeof(std::uint32_t) < blocks)
    damaged("its index is cut off");
  std::size_t before = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    std::uint32_t end = 0;
    std::memcpy(&end, bytes.data() + kHeaderBytes + block * sizeof end, sizeof end);
    if (end <= before)
      damaged("its blocks are out of order");
    before = end;
  }
  if (bytes.size() != kHeaderBytes + blocks * sizeof(std::uint32_t) + before)
    damaged("its length is not that of its blocks");
  return column;
}

void EncodedColumn::read_header() {
  Header header;
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (header.magic != kMagic || header.zero != 0)
    damaged("it does not begin as one");
  if (header.version != kVersion)
    throw std::runtime_error("an encoded column has format " + std::to_string(header.version)
                             + "; this program reads format " + std::to_string(kVersion));
  if (header.compression > static_cast<std::uint8_t>(Compression::zstd))
    damaged("compression " + std::to_string(header.compression) + " is unknown");
  compression_ = static_cast<Compression>(header.compression);
  shape_ = {.element_bytes = header.element_bytes,
            .row_bytes = header.row_bytes,
            .line_bytes = header.line_bytes,
            .plane_bytes = header.plane_bytes};
  rows_ = header.rows;
  rows_per_block_ = header.rows_per_block;
  blocks_per_key_ = header.blocks_per_key;
}

std::size_t EncodedColumn::block_rows(std::size_t block) const {
  return std::min<std::size_t>(rows_per_block_, rows_ - block * rows_per_block_);
}

void EncodedColumn::decode_block(std::size_t block, const std::byte* before, std::byte* out,
                                 CodecScratch::State& scratch) const {
  const std::byte* index = bytes_.data() + kHeaderBytes;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  if (block != 0)
    std::memcpy(&begin, index + (block - 1) * sizeof begin, sizeof begin);
  std::memcpy(&end, index + block * sizeof end, sizeof end);
  const std::byte* packed =
      index + blocks_of(rows_, rows_per_block_) * sizeof(std::uint32_t) + begin;
  const auto transform = std::to_integer<std::uint8_t>(*packed);
  const std::size_t count = block_rows(block);
  if (!transform_fits(shape_, transform)
      || !scratch.decompress(compression_, {packed + 1, end - begin - 1}, out,
                             count * shape_.row_bytes))
    damaged("block " + std::to_string(block) + " does not unpack");
  std::byte* spare = (transform & kShuffle) != 0
                         ? scratch.room(scratch.residual, count * shape_.row_bytes)
                         : nullptr;
  undo_transform(shape_, transform, before, out, count, spare);
}

void EncodedColumn::decode(std::size_t first, std::size_t count, std::byte* out, std::size_t stride,
                           CodecScratch& scratch) const {
  if (first > rows_ || count > rows_ - first)
    throw std::out_of_range("rows " + std::to_string(first) + " to " + std::to_string(first + count)
                            + " of a column of " + std::to_string(rows_));
  if (count > 1 && stride < shape_.row_bytes)
    refuse("stride", stride, "at least row_bytes");
  if (count == 0 || shape_.row_bytes == 0)
    return;
  const std::size_t row_bytes = shape_.row_bytes;
  if (compression_ == Compression::none) {
    const std::byte* row = bytes_.data() + kHeaderBytes + first * row_bytes;
    for (std::size_t i = 0; i < count; ++i, row += row_bytes)
      std::memcpy(out + i * stride, row, row_bytes);
    return;
  }
  CodecScratch::State& state = *scratch.state_;
  const std::size_t last = (first + count - 1) / rows_per_block_;
  std::size_t block = first / rows_per_block_;
  if (rows_per_block_ > 1) {
    std::byte* rows = state.room(state.rows, rows_per_block_ * row_bytes);
    for (; block <= last; ++block) {
      decode_block(block, nullptr, rows, state);
      const std::size_t begin = block * rows_per_block_;
      const std::size_t end = std::min(begin + block_rows(block), first + count);
      for (std::size_t row = std::max(begin, first); row < end; ++row)
        std::memcpy(out + (row - first) * stride, rows + (row - begin) * row_bytes, row_bytes);
    }
    return;
  }
  block -= block % blocks_per_key_;
  std::byte* two_rows = block < first ? state.room(state.before, 2 * row_bytes) : nullptr;
  const std::byte* before = nullptr;
  for (; block <= last; ++block) {
    std::byte* row =
        block < first ? two_rows + block % 2 * row_bytes : out + (block - first) * stride;
    decode_block(block, block % blocks_per_key_ == 0 ? nullptr : before, row, state);
    before = row;
  }
}

} // namespace troupe::replay
