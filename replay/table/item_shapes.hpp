#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

constexpr std::size_t kMaxShapes = 65'536; // of one table at a time

/// Numbers the shapes of a table's items; number 0 is "all rows of all columns". A shape leaves
/// with the last item that has it, and the next new shape gets the lowest free number, so that
/// equal tables number alike.
class ItemShapes {
public:
  /// The shape's number, for one more item. Compares shapes once per insertion, not per item.
  std::uint32_t use(const ShapePtr& shape);
  /// One item less has the shape of this number.
  void release(std::uint32_t number);
  /// Call it before each insertion and keep the insertion's shapes until the next call: they are
  /// known by address.
  void begin_insertion();

  /// The shape, null for number 0 and for free numbers.
  const ShapePtr& operator[](std::uint32_t number) const { return entries_[number].shape; }
  bool is_full_for(const ShapePtr& shape) const {
    return shape && numbers_.size() >= kMaxShapes && !numbers_.contains(shape.get());
  }
  std::size_t numbers() const { return entries_.size(); } // 0 to the greatest given so far
  std::size_t size() const { return numbers_.size(); }    // of all items
  std::int64_t bytes() const { return bytes_; }

  /// Fills an empty object with the shapes of a checkpoint at the same numbers, without items
  /// (null: a free number). Returns the number that each has now: two may be equal.
  std::vector<std::uint32_t> restore(const std::vector<ShapePtr>& shapes);
  /// After the use_number() of all items: frees the others.
  void free_unused();
  void use_number(std::uint32_t number) { ++entries_[number].uses; }

private:
  struct Entry {
    ShapePtr shape;
    std::uint64_t uses = 0;
  };
  struct Less {
    bool operator()(const ItemShape* a, const ItemShape* b) const { return *a < *b; }
  };
  std::uint32_t add(const ShapePtr& shape);
  void free(std::uint32_t number);

  std::vector<Entry> entries_{Entry{}};
  std::map<const ItemShape*, std::uint32_t, Less> numbers_; // keys live in entries_
  std::set<std::uint32_t> free_;
  std::int64_t bytes_ = 0;
  const ItemShape* last_ = nullptr; // of this insertion
  std::uint32_t last_number_ = 0;
  std::unordered_map<const ItemShape*, std::uint32_t> seen_; // of this insertion
};

} // namespace troupe::replay
