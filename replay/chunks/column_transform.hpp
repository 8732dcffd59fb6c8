#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/chunks/column_codec.hpp"

namespace troupe::replay {

/// Transforms that make rows other than pictures easier to compress. kTime replaces each byte with
/// its difference (modulo 256) from the previous row; then kShuffle groups the bytes of the
/// elements by position.
enum Transform : std::uint8_t { kTime = 1, kShuffle = 2 };

/// Transforms `count` contiguous rows into `out`. `before` is the row before the first one; if it
/// is nullptr, the first row is left unchanged.
void apply_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                     const std::byte* rows, std::size_t count, std::byte* out);

/// Reverses apply_transform() in place. With kShuffle, `spare` must have room for the rows.
void undo_transform(const ColumnShape& shape, std::uint8_t transform, const std::byte* before,
                    std::byte* rows, std::size_t count, std::byte* spare);

} // namespace troupe::replay
