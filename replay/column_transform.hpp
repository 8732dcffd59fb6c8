#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/column_codec.hpp"

namespace troupe::replay {

/// What makes rows that are not pictures easier to compress: differences of bytes modulo 256 to the
/// row before (the caller says which one that is), then bytes of elements put apart.
enum Transform : std::uint8_t { kTime = 1, kShuffle = 2 };

/// `count` rows at `rows` (contiguous) to `out`. `before` is the row before the first, or nullptr:
/// then the first stays as it is.
void apply_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                     const std::byte* rows, std::size_t count, std::byte* out);

/// The reverse, in place; `spare` has room for the rows where kShuffle is set.
void undo_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                    std::byte* rows, std::size_t count, std::byte* spare);

} // namespace troupe::replay
