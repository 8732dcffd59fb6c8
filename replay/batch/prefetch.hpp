#pragma once

#include <algorithm>
#include <cstddef>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

constexpr std::size_t kItemsAhead = 8; // prefetching is this far ahead of copying

/// Prefetches the beginning of a window into the cache; the hardware prefetches the rest.
inline void prefetch_window(const Item& item, std::size_t window_bytes) {
  constexpr std::size_t kCacheLine = 64;
  constexpr std::size_t kMostPrefetched = 512; // bytes
  if (item.chunks[0]->encoded())
    return;
  const std::byte* row = item.row(0);
  for (std::size_t at = 0; at < std::min(window_bytes, kMostPrefetched); at += kCacheLine)
    __builtin_prefetch(row + at);
}

} // namespace troupe::replay
