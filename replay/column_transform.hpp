#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/column_codec.hpp"

namespace troupe::replay {

/// What makes rows easier to compress, all of it by differences of bytes modulo 256: to the row
/// before, to the channel before, to the line above; and bytes of elements put apart. Undone in
/// reverse order.
enum Transform : std::uint8_t {
  kTime = 1,
  kChannel = 2,
  kLine = 4,
  kShuffle = 8,
  kTransforms = 15
};

/// Whether this shape can have these transforms; kTime needs a row before unless the block has
/// several rows.
bool transform_fits(const ColumnShape& shape, std::uint8_t transform);

/// `count` rows at `rows` (contiguous) to `out`. `before` is the row before the first, or nullptr:
/// then the first stays as it is.
void apply_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                     const std::byte* rows, std::size_t count, std::byte* out);

/// The reverse, in place; `spare` has room for the rows where kShuffle is set.
void undo_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                    std::byte* rows, std::size_t count, std::byte* spare);

/// The sum of |difference| over the bytes: what a transform leaves to the compressor.
std::uint64_t residual_size(const std::byte* bytes, std::size_t count);

} // namespace troupe::replay
