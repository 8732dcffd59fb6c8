#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "env/split_mix.hpp"

namespace troupe::replay {

/// Maps the keys of items to their places: a hash table with open addressing. Allocates only to
/// grow.
class KeyIndex {
public:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t find(std::uint64_t key) const {
    if (entries_.empty())
      return kAbsent;
    for (std::size_t at = home(key);; at = (at + 1) & mask()) {
      if (entries_[at].place == kAbsent || entries_[at].key == key)
        return entries_[at].place;
    }
  }

  void insert(std::uint64_t key, std::uint32_t place) { // the key must be absent
    if (2 * (size_ + 1) > entries_.size())
      grow();
    put({key, place});
    ++size_;
  }

  void erase(std::uint64_t key) { // the key must be present
    std::size_t gap = home(key);
    while (entries_[gap].key != key || entries_[gap].place == kAbsent)
      gap = (gap + 1) & mask();
    // Entries after the gap that may be stored in it move up.
    for (std::size_t at = (gap + 1) & mask(); entries_[at].place != kAbsent;
         at = (at + 1) & mask()) {
      const std::size_t distance = (at - home(entries_[at].key)) & mask();
      if (distance >= ((at - gap) & mask())) {
        entries_[gap] = entries_[at];
        gap = at;
      }
    }
    entries_[gap] = {};
    --size_;
  }

  std::size_t size() const { return size_; }

private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t place = kAbsent;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>(env::mix_bits(key)) & mask();
  }
  void put(const Entry& entry) {
    std::size_t at = home(entry.key);
    while (entries_[at].place != kAbsent)
      at = (at + 1) & mask();
    entries_[at] = entry;
  }
  void grow() {
    std::vector<Entry> old =
        std::exchange(entries_, std::vector<Entry>(entries_.empty() ? 64 : 2 * entries_.size()));
    for (const Entry& entry : old)
      if (entry.place != kAbsent)
        put(entry);
  }

  std::vector<Entry> entries_; // the size is a power of two, at most half of it used
  std::size_t size_ = 0;
};

} // namespace troupe::replay
