#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/chunks/column_codec.hpp"

namespace troupe::replay {

/// Transforms that make rows other than pictures easier to compress: kTime replaces bytes by their
/// differences modulo 256 to the row before, then kShuffle groups the elements' bytes by position.
enum Transform : std::uint8_t { kTime = 1, kShuffle = 2 };

/// Transforms `count` contiguous rows into `out`. `before`: the row before the first; nullptr
/// leaves the first row as it is.
void apply_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                     const std::byte* rows, std::size_t count, std::byte* out);

/// The reverse, in place. With kShuffle, `spare` must have room for the rows.
void undo_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                    std::byte* rows, std::size_t count, std::byte* spare);

} // namespace troupe::replay
