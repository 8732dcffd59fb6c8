#include "replay/batch/gather_columns.hpp"

#include <cstdint>
#include <cstring>

#include "replay/batch/prefetch.hpp"
#include "replay/chunks/window_reader.hpp"

namespace troupe::replay {

namespace {

/// Copies a row. The sizes of single numbers are compile-time constants, which makes them fast.
inline void copy_row(std::byte* out, const std::byte* from, std::size_t bytes) {
  if (bytes == 1)
    *out = *from;
  else if (bytes == 4)
    std::memcpy(out, from, 4);
  else if (bytes == 8)
    std::memcpy(out, from, 8);
  else
    std::memcpy(out, from, bytes);
}

/// Copies one column of the rows of a slice of the item's window, and advances `out`.
void copy_slice(const WindowReader& window, const RowLayout::Column& column, const Slice& slice,
                std::byte*& out) {
  for (std::uint32_t k = 0; k < slice.count; ++k, out += column.bytes)
    copy_row(out, window.row(slice.first + k) + column.offset, column.bytes);
}

} // namespace

std::size_t shown_bytes(const RowLayout& layout, std::size_t column, const Item& item) {
  return rows_shown(item.shape.get(), column, item.rows) * layout.columns[column].bytes;
}

void gather_columns(const RowLayout& layout, std::span<const Item> items,
                    std::span<std::byte*> out) {
  WindowReader window;
  const std::size_t columns = layout.columns.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i + kItemsAhead < items.size())
      prefetch_window(items[i + kItemsAhead], items[i + kItemsAhead].rows * layout.row_bytes);
    const Item& item = items[i];
    window.open(item);
    for (std::size_t column = 0; column < columns; ++column)
      if (!item.shape)
        copy_slice(window, layout.columns[column], {0, item.rows}, out[column]);
      else
        for (const Slice& slice : item.shape->columns[column])
          copy_slice(window, layout.columns[column], slice, out[column]);
  }
}

} // namespace troupe::replay
