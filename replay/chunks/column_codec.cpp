#include "replay/chunks/column_codec.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "replay/chunks/column_format.hpp"
#include "replay/chunks/column_transform.hpp"
#include "replay/chunks/picture_pack.hpp"

namespace troupe::replay {

namespace {

[[noreturn]] void damaged(const std::string& why) {
  throw std::runtime_error("an encoded column is damaged: " + why
                           + "; read it from another copy or checkpoint");
}

} // namespace

CodecScratch::CodecScratch() : state_(std::make_unique<State>()) {}
CodecScratch::~CodecScratch() = default;
CodecScratch::CodecScratch(CodecScratch&&) noexcept = default;
CodecScratch& CodecScratch::operator=(CodecScratch&&) noexcept = default;

EncodedColumn EncodedColumn::parse(std::span<const std::byte> bytes, const ColumnShape& shape,
                                   std::size_t most_rows) {
  if (bytes.size() < sizeof(ColumnHeader))
    damaged(std::to_string(bytes.size()) + " bytes are too few for a header");
  EncodedColumn column;
  column.read_header(bytes);
  if (!(column.shape_ == shape))
    throw std::runtime_error(
        "an encoded column has rows of " + std::to_string(column.shape_.row_bytes)
        + " bytes, whose shape differs from the " + std::to_string(shape.row_bytes)
        + " bytes expected; it belongs to another table");
  if (column.rows_ > std::min(most_rows, kMostColumnRows))
    damaged("it claims " + std::to_string(column.rows_) + " rows of at most "
            + std::to_string(std::min(most_rows, kMostColumnRows)));
  column.check_blocks(bytes.subspan(sizeof(ColumnHeader)));
  column.bytes_.assign(bytes.begin(), bytes.end());
  return column;
}

void EncodedColumn::read_header(std::span<const std::byte> bytes) {
  ColumnHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != ColumnHeader::kMagic || header.zero != 0)
    damaged("its magic number is wrong");
  if (header.version != ColumnHeader::kVersion)
    throw std::runtime_error("an encoded column has format " + std::to_string(header.version)
                             + "; this program reads format "
                             + std::to_string(ColumnHeader::kVersion));
  if (header.compression > static_cast<std::uint8_t>(Compression::zstd))
    damaged("compression " + std::to_string(header.compression) + " is unknown");
  compression_ = static_cast<Compression>(header.compression);
  shape_ = {.element_bytes = header.element_bytes,
            .row_bytes = header.row_bytes,
            .line_bytes = header.line_bytes,
            .plane_bytes = header.plane_bytes};
  rows_ = header.rows;
  rows_per_block_ = header.rows_per_block;
  groups_ = header.groups;
}

void EncodedColumn::check_blocks(std::span<const std::byte> body) const {
  if (compression_ == Compression::none) {
    if (rows_per_block_ != 0 || groups_ != 0 || body.size() != rows_ * shape_.row_bytes)
      damaged("its length does not match its rows");
    return;
  }
  if (rows_ == 0 || shape_.row_bytes == 0 || rows_per_block_ == 0 || groups_ > rows_
      || (packs(shape_) ? rows_per_block_ != 1 : compression_ == Compression::packed)
      || (rows_per_block_ > 1
          && (groups_ != 0 || rows_per_block_ > kBlockBytes / shape_.row_bytes)))
    damaged("its blocks have impossible sizes");
  if (body.size() / sizeof(std::uint32_t) < blocks())
    damaged("its index is truncated");
  std::size_t before = 0;
  for (std::size_t block = 0; block < blocks(); ++block) {
    std::uint32_t end = 0;
    std::memcpy(&end, body.data() + block * sizeof end, sizeof end);
    if (end <= before)
      damaged("its blocks are out of order");
    before = end;
  }
  if (body.size() != blocks() * sizeof(std::uint32_t) + before)
    damaged("its length does not match its blocks");
}

std::size_t EncodedColumn::blocks() const {
  return rows_per_block_ == 0 ? 0 : (rows_ + rows_per_block_ - 1) / rows_per_block_;
}

std::size_t EncodedColumn::block_rows(std::size_t block) const {
  return std::min<std::size_t>(rows_per_block_, rows_ - block * rows_per_block_);
}

void EncodedColumn::decode_block(std::size_t block, const std::byte* before, std::byte* out,
                                 CodecScratch::State& scratch) const {
  const std::byte* index = bytes_.data() + sizeof(ColumnHeader);
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  if (block != 0)
    std::memcpy(&begin, index + (block - 1) * sizeof begin, sizeof begin);
  std::memcpy(&end, index + block * sizeof end, sizeof end);
  const std::byte* block_begin = index + blocks() * sizeof(std::uint32_t) + begin;
  const auto transform = std::to_integer<std::uint8_t>(*block_begin);
  std::span<const std::byte> packed{block_begin + 1, end - begin - 1};
  const std::size_t size = block_rows(block) * shape_.row_bytes;
  bool right = false;
  if (packs(shape_)) {
    if (compression_ != Compression::packed) {
      const std::size_t most = packed_bound(size);
      std::byte* unpacked = scratch.room(scratch.residual, most);
      const std::size_t got =
          scratch.decompress(compression_, packed, unpacked, most, groups_ != 0);
      packed = {unpacked, got <= most ? got : 0};
    }
    right = transform == 0 && unpack_picture(shape_, before, packed, out);
  } else if (transform <= (kTime | kShuffle)
             && scratch.decompress(compression_, packed, out, size, groups_ != 0) == size) {
    std::byte* spare = scratch.room(scratch.residual, size);
    undo_transform(shape_, transform, before, out, block_rows(block), spare);
    right = true;
  }
  if (!right)
    damaged("block " + std::to_string(block) + " does not unpack");
}

void EncodedColumn::decode(std::size_t first, std::size_t count, std::byte* out, std::size_t stride,
                           CodecScratch& scratch) const {
  if (first > rows_ || count > rows_ - first)
    throw std::out_of_range("rows " + std::to_string(first) + " and " + std::to_string(count)
                            + " more of a column of " + std::to_string(rows_));
  if (count == 0 || shape_.row_bytes == 0)
    return;
  const Window window{first, first + count, out, stride};
  if (compression_ == Compression::none) {
    const std::byte* row = bytes_.data() + sizeof(ColumnHeader) + first * shape_.row_bytes;
    for (std::size_t i = first; i < window.end; ++i, row += shape_.row_bytes)
      std::memcpy(window.row(i), row, shape_.row_bytes);
  } else if (groups_ == 0) {
    decode_blocks(window, *scratch.state_);
  } else {
    for (std::size_t group = 0; group < groups_; ++group) {
      const KeyGroup g = key_group(rows_, groups_, group);
      if (g.begin < window.end && g.end > first)
        decode_group(g, window, *scratch.state_);
    }
  }
}

void EncodedColumn::decode_blocks(const Window& window, CodecScratch::State& scratch) const {
  const std::size_t row_bytes = shape_.row_bytes;
  std::byte* rows = scratch.room(scratch.rows, rows_per_block_ * row_bytes);
  for (std::size_t begin = window.first - window.first % rows_per_block_; begin < window.end;
       begin += rows_per_block_) {
    decode_block(begin / rows_per_block_, nullptr, rows, scratch);
    const std::size_t end = std::min<std::size_t>(begin + rows_per_block_, window.end);
    for (std::size_t i = std::max(begin, window.first); i < end; ++i)
      std::memcpy(window.row(i), rows + (i - begin) * row_bytes, row_bytes);
  }
}

void EncodedColumn::decode_group(const KeyGroup& group, const Window& window,
                                 CodecScratch::State& scratch) const {
  const std::size_t row_bytes = shape_.row_bytes;
  const std::size_t first = std::max(window.first, group.begin);
  const std::size_t last = std::min(window.end, group.end) - 1;
  // The rows between the key and the window alternate between two places after the key's.
  std::byte* spare = scratch.room(scratch.before, 3 * row_bytes);
  const auto place = [&](std::size_t i) {
    return first <= i && i <= last ? window.row(i)
           : i == group.key        ? spare
                                   : spare + (1 + i % 2) * row_bytes;
  };
  std::byte* key = place(group.key);
  scratch.begin_chain();
  decode_block(group.block(group.key), nullptr, key, scratch);
  const std::byte* before = key;
  for (std::size_t i = group.key + 1; i <= last; ++i) {
    std::byte* row = place(i);
    decode_block(group.block(i), before, row, scratch);
    before = row;
  }
  before = key;
  scratch.begin_chain();
  for (std::size_t i = group.key; i > first; --i) {
    std::byte* row = place(i - 1);
    decode_block(group.block(i - 1), before, row, scratch);
    before = row;
  }
}

} // namespace troupe::replay
