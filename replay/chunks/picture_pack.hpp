#pragma once

#include <cstddef>
#include <span>

#include "replay/chunks/column_codec.hpp"

namespace troupe::replay {

// clang-format off
/// Packs pictures (ColumnShape with line_bytes and plane_bytes, one-byte elements): stores the
/// difference of each pixel from a prediction by its neighbours, in as few bits as the differences
/// need. Without entropy coding it unpacks at several GB/s, and its output compresses faster than
/// the raw pixels.
///
/// A row consists of groups of 256 bytes, and a group of blocks of 32. A group is
///   [predictor u8, + 0x80 if no block follows] [widths u16: 2 bits per block] [blocks]
/// and a block is 32 differences (zigzag, modulo 256) of 0, 2, 4 or 8 bits: byte k of its 0, 8, 16
/// or 32 bytes contains the differences of pixels k, k + 8, … or k, k + 16, starting with the
/// lowest bits. Predictors are sums of the same pixel in the previous row, in the line above and in
/// the previous channel.
// clang-format on

/// Returns the largest number of bytes that pack_picture() writes.
std::size_t packed_bound(std::size_t row_bytes);

/// Packs a row relative to the row `before`, or by itself if `before` is nullptr. Returns the
/// number of bytes written.
std::size_t pack_picture(const ColumnShape& shape, const std::byte* before, const std::byte* row,
                         std::byte* out);

/// Writes the unpacked row to `out`. Returns false if `packed` is not an output of pack_picture().
/// Never accesses bytes beyond `packed`, `before` and `out`.
bool unpack_picture(const ColumnShape& shape, const std::byte* before,
                    std::span<const std::byte> packed, std::byte* out);

} // namespace troupe::replay
