#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::replay {

/// Returns the share of part `part` when `total` things are divided among `parts` parts. Shares
/// differ by at most one and add up to the total.
constexpr std::uint64_t even_share(std::uint64_t total, std::uint32_t part, std::uint32_t parts) {
  return (total + part) / parts;
}

struct ItemRange {
  std::uint64_t begin = 0, end = 0; // positions in one table, oldest first
  bool operator==(const ItemRange&) const = default;
};

/// Returns the items of part `part` of `parts` as ranges in each table, where table t has items[t]
/// items. Every item belongs to exactly one part, and part i has even_share(all items, i, parts)
/// items. The ranges are long, so that few chunks belong to two parts, and every part has items of
/// every age.
std::vector<std::vector<ItemRange>> reshard(std::span<const std::uint64_t> items,
                                            std::uint32_t part, std::uint32_t parts);

} // namespace troupe::replay
