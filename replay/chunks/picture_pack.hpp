#pragma once

#include <cstddef>
#include <span>

#include "replay/chunks/column_codec.hpp"

namespace troupe::replay {

// clang-format off
/// Packs pictures (ColumnShape with line_bytes and plane_bytes, one-byte elements): each pixel minus a
/// prediction from its neighbours, in as few bits as the differences need. Without entropy coding it
/// unpacks at several GB/s, and its output is faster to compress further than the pixels.
///
/// A row consists of groups of 256 bytes, a group of blocks of 32. A group is
///   [predictor u8, + 0x80 if no block follows] [widths u16: 2 bits per block] [blocks]
/// and a block 32 differences (zigzag, modulo 256) of 0, 2, 4 or 8 bits: byte k of its 0, 8, 16 or
/// 32 bytes contains those of pixels k, k + 8, … or k, k + 16, from the lowest bits on. Predictors are
/// sums of the same pixel in the row before, of the pixel above and of the channel before.
// clang-format on

/// The most bytes that pack_picture() writes.
std::size_t packed_bound(std::size_t row_bytes);

/// `before`: another row, or nullptr to encode the row by itself. Returns the bytes written.
std::size_t pack_picture(const ColumnShape& shape, const std::byte* before, const std::byte* row,
                         std::byte* out);

/// Writes the row to `out`. False if `packed` is not the output of pack_picture(); never reads
/// beyond `packed`, `before` and `out`.
bool unpack_picture(const ColumnShape& shape, const std::byte* before,
                    std::span<const std::byte> packed, std::byte* out);

} // namespace troupe::replay
