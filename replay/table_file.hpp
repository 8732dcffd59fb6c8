#pragma once

#include <cstdint>

/// What writing and reading a table's file share.
namespace troupe::replay {

constexpr char kTableMagic[8] = {'T', 'R', 'P', 'T', 'A', 'B', 'L', 'E'};
constexpr std::uint64_t kTableVersion = 3;
constexpr std::uint64_t kItemsPerBlock = 1 << 20;

} // namespace troupe::replay
