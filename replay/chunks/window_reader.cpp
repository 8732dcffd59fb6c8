#include "replay/chunks/window_reader.hpp"

#include <algorithm>

namespace troupe::replay {

void WindowReader::open(const Item& item) {
  item_ = &item;
  decoded_ = false;
  for (std::size_t i = 0; i < item.chunks.size(); ++i)
    decoded_ = decoded_ || item.chunks[i]->encoded();
  if (!decoded_)
    return;
  if (!scratch_)
    scratch_.emplace();
  row_bytes_ = item.chunks[0]->layout().row_bytes;
  rows_.resize(std::max(rows_.size(), item.rows * row_bytes_));
  const std::uint32_t capacity = item.chunks[0]->capacity();
  std::byte* out = rows_.data();
  std::uint32_t first = item.begin;
  std::uint32_t left = item.rows;
  for (std::size_t i = 0; left > 0; ++i, first = 0) {
    const std::uint32_t count = std::min(left, capacity - first);
    item.chunks[i]->decode(first, count, out, *scratch_);
    out += count * row_bytes_;
    left -= count;
  }
}

} // namespace troupe::replay
