#pragma once

#include <cstddef>
#include <span>

#include "replay/column_codec.hpp"

namespace troupe::replay {

/// Pictures (ColumnShape with line_bytes and plane_bytes, elements of one byte) as differences to
/// what their surroundings foretell, in as few bits as these need: no entropy coding, so that it
/// comes apart at several GB/s, and what it leaves is also quicker to compress further.
///
/// A row is cut into groups of 256 bytes, a group into blocks of 32. A group is
///   [foreteller u8, + 0x80 if no block follows] [widths u16: 2 bits for each block] [blocks]
/// and a block 32 differences (zigzag, modulo 256) of 0, 2, 4 or 8 bits: byte k of its 0, 8, 16 or
/// 32 bytes has those of pixels k, k + 8, … or k, k + 16 from the lowest bits on. Foretellers are
/// sums of the same pixel in the row before, of the pixel above and of the channel before.

/// Bytes that pack_picture() writes at most.
std::size_t packed_bound(std::size_t row_bytes);

/// `before` is another row, or nullptr for a row that stands alone. Gives the bytes written.
std::size_t pack_picture(const ColumnShape& shape, const std::byte* before, const std::byte* row,
                         std::byte* out);

/// Writes the row to `out`. False when `packed` is not what pack_picture() gave; never reads beyond
/// it, `before` and `out`.
bool unpack_picture(const ColumnShape& shape, const std::byte* before,
                    std::span<const std::byte> packed, std::byte* out);

} // namespace troupe::replay
