#pragma once

#include <cstddef>
#include <span>

#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"

namespace troupe::replay {

/// Returns the bytes of the rows of a column that an item shows.
std::size_t shown_bytes(const RowLayout& layout, std::size_t column, const Item& item);

/// Copies the rows that the items show. The rows of all items of a column are written to
/// out[column] without gaps, in the order of the items, and out[column] is advanced past them. All
/// items must have this layout. May be called on any thread; allocates only for encoded chunks.
/// Throws StorageError if a disk fails.
void gather_columns(const RowLayout& layout, std::span<const Item> items,
                    std::span<std::byte*> out);

} // namespace troupe::replay
