#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

constexpr std::size_t kMaxShapes = 65'536; // of one table

/// Numbers the shapes of a table's items; number 0 is "all rows of all columns". Shapes are never
/// forgotten.
class ItemShapes {
public:
  std::uint32_t number(const ShapePtr& shape) {
    if (!shape)
      return 0;
    const auto [at, added] =
        numbers_.try_emplace(*shape, static_cast<std::uint32_t>(shapes_.size()));
    if (added)
      shapes_.push_back(shape);
    return at->second;
  }
  const ShapePtr& operator[](std::uint32_t number) const { return shapes_[number]; }
  bool contains(const ItemShape& shape) const { return numbers_.contains(shape); }
  std::size_t size() const { return shapes_.size(); }

private:
  std::vector<ShapePtr> shapes_{nullptr};
  std::map<ItemShape, std::uint32_t> numbers_;
};

} // namespace troupe::replay
