#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "replay/chunks/column_codec.hpp"
#include "replay/chunks/column_format.hpp"
#include "replay/chunks/column_transform.hpp"
#include "replay/chunks/picture_pack.hpp"

namespace troupe::replay {

ColumnShape column_shape(const env::ArraySpec& array) {
  ColumnShape shape{.element_bytes = env::element_bytes(array.type), .row_bytes = array.bytes()};
  if (shape.element_bytes == 1 && array.shape.size() == 3 && shape.row_bytes != 0) {
    shape.line_bytes = static_cast<std::size_t>(array.shape[2]);
    shape.plane_bytes = shape.line_bytes * static_cast<std::size_t>(array.shape[1]);
  }
  return shape;
}

/// Encodes the blocks of one column.
class EncodedColumn::Blocks {
public:
  Blocks(const ColumnShape& shape, const ColumnRows& rows, const ColumnPlan& plan,
         CodecScratch::State& scratch)
      : shape_(shape), rows_(rows), plan_(plan), scratch_(scratch) {}

  /// Appends the encoded blocks to the header of `column`, whose blocks and groups are set. Returns
  /// false if they are not smaller than the rows.
  bool append_to(EncodedColumn& column) {
    index_ = column.bytes_.size();
    begin_ = index_ + column.blocks() * sizeof(std::uint32_t);
    column.bytes_.resize(begin_);
    if (column.groups_ == 0) {
      for (std::size_t block = 0; block < column.blocks(); ++block)
        if (!append(column, block, block * column.rows_per_block_, nullptr))
          return false;
      return true;
    }
    for (std::size_t group = 0; group < column.groups_; ++group)
      if (!append_group(column, key_group(rows_.count, column.groups_, group)))
        return false;
    return true;
  }

private:
  const std::byte* row(std::size_t i) const { return rows_.first + i * rows_.stride; }

  bool append_group(EncodedColumn& column, const KeyGroup& group) {
    scratch_.begin_chain();
    for (std::size_t i = group.key; i < group.end; ++i)
      if (!append(column, group.block(i), i, i == group.key ? nullptr : row(i - 1)))
        return false;
    scratch_.begin_chain();
    for (std::size_t i = group.key; i > group.begin; --i)
      if (!append(column, group.block(i - 1), i - 1, row(i)))
        return false;
    return true;
  }

  bool append(EncodedColumn& column, std::size_t block, std::size_t first,
              const std::byte* before) {
    const std::size_t count = column.block_rows(block);
    const std::byte* rows = row(first);
    if (count > 1) {
      std::byte* together = scratch_.room(scratch_.rows, count * shape_.row_bytes);
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(together + i * shape_.row_bytes, row(first + i), shape_.row_bytes);
      rows = together;
    }
    const auto [transform, packed] = pack(rows, count, before, column.groups_ != 0);
    std::vector<std::byte>& out = column.bytes_;
    const std::size_t end = out.size() - begin_ + 1 + packed.size();
    if (begin_ + end >= index_ + rows_.count * shape_.row_bytes
        || end > std::numeric_limits<std::uint32_t>::max())
      return false;
    out.push_back(std::byte{transform});
    out.insert(out.end(), packed.begin(), packed.end());
    const auto end32 = static_cast<std::uint32_t>(end);
    std::memcpy(out.data() + index_ + block * sizeof end32, &end32, sizeof end32);
    return true;
  }

  std::pair<std::uint8_t, std::span<const std::byte>> pack(const std::byte* rows, std::size_t count,
                                                           const std::byte* before, bool chained) {
    if (packs(shape_)) {
      std::byte* out = scratch_.room(scratch_.residual, packed_bound(shape_.row_bytes));
      const std::span<const std::byte> packed{out, pack_picture(shape_, before, rows, out)};
      return {0, plan_.compression == Compression::packed
                     ? packed
                     : scratch_.compress(plan_.compression, packed, chained)};
    }
    const auto transform =
        static_cast<std::uint8_t>((plan_.delta ? kTime : 0) | (plan_.shuffle ? kShuffle : 0));
    const std::size_t size = count * shape_.row_bytes;
    std::byte* out = scratch_.room(scratch_.residual, size);
    apply_transform(shape_, transform, before, rows, count, out);
    return {transform, scratch_.compress(plan_.compression, {out, size}, chained)};
  }

  const ColumnShape& shape_;
  const ColumnRows& rows_;
  const ColumnPlan& plan_;
  CodecScratch::State& scratch_;
  std::size_t index_ = 0; // offset of the list of block ends
  std::size_t begin_ = 0; // offset of the first block
};

EncodedColumn EncodedColumn::encode(const ColumnShape& shape, const ColumnRows& rows,
                                    const ColumnPlan& plan, CodecScratch& scratch) {
  if (rows.count > kMostColumnRows)
    throw std::invalid_argument("a column of " + std::to_string(rows.count)
                                + " rows cannot be encoded; at most 2^20 are allowed");
  if (plan.compression > Compression::zstd)
    throw std::invalid_argument("column compression of a plan must be none, packed, lz4 or "
                                "zstd; "
                                "plan_column() decides what `automatic` is");
  EncodedColumn column;
  column.shape_ = shape;
  column.rows_ = rows.count;
  if (rows.count != 0 && shape.row_bytes != 0 && plan.compression != Compression::none
      && (plan.compression != Compression::packed || packs(shape))) {
    const bool large = shape.row_bytes >= kLargeRow;
    column.compression_ = plan.compression;
    column.rows_per_block_ =
        static_cast<std::uint32_t>(large ? 1 : std::min(rows.count, kBlockBytes / shape.row_bytes));
    if (large)
      column.groups_ = static_cast<std::uint32_t>(
          std::max<std::size_t>(1, (rows.count + kKeyRows / 2) / kKeyRows));
    column.write_header();
    if (Blocks(shape, rows, plan, *scratch.state_).append_to(column)) {
      column.bytes_.shrink_to_fit();
      return column;
    }
  }
  column.compression_ = Compression::none;
  column.rows_per_block_ = column.groups_ = 0;
  column.bytes_.reserve(sizeof(ColumnHeader) + rows.count * shape.row_bytes);
  column.write_header();
  if (shape.row_bytes != 0)
    for (std::size_t i = 0; i < rows.count; ++i) {
      const std::byte* row = rows.first + i * rows.stride;
      column.bytes_.insert(column.bytes_.end(), row, row + shape.row_bytes);
    }
  column.bytes_.shrink_to_fit();
  return column;
}

void EncodedColumn::write_header() {
  const ColumnHeader header{.compression = static_cast<std::uint8_t>(compression_),
                            .element_bytes = static_cast<std::uint8_t>(shape_.element_bytes),
                            .rows = static_cast<std::uint32_t>(rows_),
                            .row_bytes = static_cast<std::uint32_t>(shape_.row_bytes),
                            .line_bytes = static_cast<std::uint32_t>(shape_.line_bytes),
                            .plane_bytes = static_cast<std::uint32_t>(shape_.plane_bytes),
                            .rows_per_block = rows_per_block_,
                            .groups = groups_};
  bytes_.resize(sizeof header);
  std::memcpy(bytes_.data(), &header, sizeof header);
}

ColumnPlan plan_column(const ColumnShape& shape, const ColumnRows& rows, Compression wanted,
                       CodecScratch& scratch) {
  const std::size_t raw = rows.count * shape.row_bytes;
  if (wanted == Compression::none || raw == 0)
    return {};
  struct Best {
    std::size_t bytes = std::numeric_limits<std::size_t>::max() / 2;
    ColumnPlan plan;
  } packed, lz4, zstd;
  const auto attempt = [&](Best& best, const ColumnPlan& plan) {
    if (wanted != Compression::automatic && wanted != plan.compression)
      return;
    const auto column = EncodedColumn::encode(shape, rows, plan, scratch);
    if (column.serialized().size() < best.bytes)
      best = {column.serialized().size(), plan};
  };
  attempt(packed, {Compression::packed});
  for (const bool delta : {false, true})
    for (const bool shuffle : {false, true}) {
      if ((packs(shape) && delta) || (shuffle && shape.element_bytes == 1))
        continue;
      attempt(lz4, {Compression::lz4, delta, shuffle});
      attempt(zstd, {Compression::zstd, delta, shuffle});
    }
  const std::size_t least = std::min({packed.bytes, lz4.bytes, zstd.bytes});
  for (const Best* best : {&packed, &lz4, &zstd}) // the fastest first
    if (best->bytes <= least + least / 4)
      return wanted != Compression::automatic || best->bytes * 5 <= raw * 4 ? best->plan
                                                                            : ColumnPlan{};
  return {};
}

} // namespace troupe::replay
