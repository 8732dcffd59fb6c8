#include "replay/table/reshard.hpp"

namespace troupe::replay {

namespace {
constexpr std::uint64_t kAges = 4; // every part gets items from each quarter of a table
}

std::vector<std::vector<ItemRange>> reshard(std::span<const std::uint64_t> items,
                                            std::uint32_t part, std::uint32_t parts) {
  std::vector<std::vector<ItemRange>> ranges(items.size());
  std::uint64_t shared = 0;
  for (std::uint64_t age = 0; age < kAges; ++age)
    for (std::size_t table = 0; table < items.size(); ++table) {
      const auto up_to = [&](std::uint64_t ages) {
        return items[table] / kAges * ages + items[table] % kAges * ages / kAges;
      };
      std::uint64_t begin = up_to(age);
      const std::uint64_t after = shared + up_to(age + 1) - begin;
      const auto piece = [&](std::uint32_t i) { // shares grow with the total
        return even_share(after, i, parts) - even_share(shared, i, parts);
      };
      for (std::uint32_t i = 0; i < part; ++i)
        begin += piece(i);
      if (piece(part) > 0)
        ranges[table].push_back({begin, begin + piece(part)});
      shared = after;
    }
  return ranges;
}

} // namespace troupe::replay
