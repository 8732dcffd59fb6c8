#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::replay {

/// What one of `parts` gets of `total` things that are dealt out: all parts together get each once,
/// and none gets more than one more than another.
constexpr std::uint64_t dealt_share(std::uint64_t total, std::uint32_t part, std::uint32_t parts) {
  return (total + part) / parts;
}

struct DealtRange {
  std::uint64_t begin = 0, end = 0; // of the items of one table, oldest first
  bool operator==(const DealtRange&) const = default;
};

/// Which items of tables that hold so many each, all of them oldest first, belong to part `part` of
/// `parts`: for each table its ranges. Every item belongs to one part; part i has
/// dealt_share(all items, i, parts). Ranges are long, so that few chunks are needed by two parts,
/// and every part has some of each age.
std::vector<std::vector<DealtRange>> deal(std::span<const std::uint64_t> items, std::uint32_t part,
                                          std::uint32_t parts);

} // namespace troupe::replay
