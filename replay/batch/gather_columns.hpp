#pragma once

#include <cstddef>
#include <span>

#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"

namespace troupe::replay {

/// Bytes of the rows that an item shows of a column.
std::size_t shown_bytes(const RowLayout& layout, std::size_t column, const Item& item);

/// Copies what items show: to out[column] the rows of one item after those of another, without
/// gaps, and moves out[column] behind them. The items have the same layout. Any thread; allocates
/// only for encoded chunks. Throws StorageError if a disk fails.
void gather_columns(const RowLayout& layout, std::span<const Item> items,
                    std::span<std::byte*> out);

} // namespace troupe::replay
