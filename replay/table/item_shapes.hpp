#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "replay/chunks/insertion.hpp"

namespace troupe::replay {

constexpr std::size_t kMaxShapes = 65'536; // in one table at a time

/// Assigns numbers to the shapes of a table's items; number 0 means "all rows of all columns". A
/// shape is removed with the last item that has it. A new shape gets the lowest free number, so
/// that equal tables assign the same numbers.
class ItemShapes {
public:
  /// Adds an item with this shape and returns the shape's number. Compares shapes once per
  /// insertion, not per item.
  std::uint32_t use(const ShapePtr& shape);
  /// Removes an item with the shape of this number.
  void release(std::uint32_t number);
  /// Must be called before each insertion. The insertion's shapes must stay alive until the next
  /// call, because they are recognised by address.
  void begin_insertion();

  /// Returns the shape; null for number 0 and for free numbers.
  const ShapePtr& operator[](std::uint32_t number) const { return entries_[number].shape; }
  bool is_full_for(const ShapePtr& shape) const {
    return shape && numbers_.size() >= kMaxShapes && !numbers_.contains(shape.get());
  }
  // One more than the greatest number used so far.
  std::size_t numbers() const { return entries_.size(); }
  std::int64_t bytes() const { return bytes_; }

  /// Fills an empty object with the shapes of a checkpoint, under the same numbers and without
  /// items (null: a free number). Returns the number of each shape; duplicate shapes get the same
  /// number.
  std::vector<std::uint32_t> restore(const std::vector<ShapePtr>& shapes);
  /// Frees all numbers without items. Called after use_number() was called for every item.
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
  std::map<const ItemShape*, std::uint32_t, Less> numbers_; // keys point into entries_
  std::set<std::uint32_t> free_;
  std::int64_t bytes_ = 0;
  const ItemShape* last_ = nullptr; // of this insertion
  std::uint32_t last_number_ = 0;
  std::unordered_map<const ItemShape*, std::uint32_t> seen_; // of this insertion
};

} // namespace troupe::replay
