#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/table/key_index.hpp"
#include "replay/table/random.hpp"
#include "replay/table/selector.hpp"
#include "replay/table/table_config.hpp"

namespace troupe::replay {

/// The rows of an item: a window that begins in a chunk of TableChunks and continues in the chunks
/// linked after it. Checkpoints contain the bytes of this struct.
struct ItemWindow {
  std::uint32_t chunk = 0; // index of the first chunk
  std::uint32_t begin = 0;
  std::uint32_t rows = 0;
  std::uint32_t history = 0;
  std::uint32_t shape = 0; // its number in ItemShapes
};

/// The items of a checkpoint, by ascending key.
struct SavedItems {
  std::vector<ItemWindow> windows;
  std::vector<std::uint32_t> times;
  std::vector<double> priorities; // empty: all are 1
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> sampler, remover; // Selector::order(), as positions in these vectors
};

/// The items of a table: the window, priority and number of samples of each, and the selectors that
/// choose among them. An item has a key, which increases from item to item, and a place, a small
/// number that is valid until the next add() or remove().
///
/// If the table always removes the oldest item, the items form a ring: key k has place k & (places
/// - 1), and uniform sampling needs no selector. Otherwise a hash index maps keys to places.
class TableItems {
public:
  using Place = std::uint32_t;
  static constexpr Place kAbsent = KeyIndex::kAbsent;

  explicit TableItems(const TableConfig& config);

  std::int64_t size() const {
    return static_cast<std::int64_t>(is_ring() ? end_ - begin_ : index_.size());
  }
  bool is_ring() const { return remover_ == nullptr; }
  bool keeps_priorities() const { return keeps_priorities_; }
  std::uint64_t next_key() const { return end_; }

  Place find(std::uint64_t key) const; // kAbsent: removed
  std::uint64_t key_at(Place place) const {
    return is_ring() ? begin_ + ((place - begin_) & (windows_.size() - 1)) : keys_[place];
  }
  std::vector<Place> by_key() const; // all, oldest first

  const ItemWindow& window(Place place) const { return windows_[place]; }
  /// Prefetches an item's entries into the cache.
  void prefetch(Place place) const {
    __builtin_prefetch(&windows_[place]);
    __builtin_prefetch(&times_[place], 1);
    if (!priorities_.empty())
      __builtin_prefetch(&priorities_[place]);
    if (!keys_.empty())
      __builtin_prefetch(&keys_[place]);
  }
  std::uint32_t times_sampled(Place place) const { return times_[place]; }
  double priority(Place place) const { return priorities_.empty() ? 1 : priorities_[place]; }
  /// Returns the sum of times_sampled() over the present items.
  std::int64_t times_sampled() const { return times_of_all_; }
  /// Returns the sum of the sampler's weights, or the number of items if it has none.
  double total_weight() const { return sampler_ ? sampler_->total() : static_cast<double>(size()); }

  /// Returns the new item's place. Allocates only to grow.
  Place add(const ItemWindow& window, double priority);
  ItemWindow remove(Place place);
  Place choose_removal(Random& random) const; // there must be at least one item
  void set_priorities(std::span<const Place> places, std::span<const double> priorities);

  /// Chooses items with replacement; there must be at least one.
  void sample(Random& random, std::span<Selected> out) const;
  void count_sample(Place place) {
    ++times_[place];
    ++times_of_all_;
  }

  /// The selectors, whose Selector::order() is saved in checkpoints. Null where a ring needs none.
  const Selector* sampler() const { return sampler_.get(); }
  const Selector* remover() const { return remover_.get(); }

  /// Fills an empty object. `next_key` is the key of the next item to be added; in a ring the saved
  /// items get the keys just below it. With `same_selectors` the selectors continue exactly as the
  /// saved ones.
  void restore(const SavedItems& saved, std::uint64_t next_key, bool same_selectors);

private:
  Place new_place(std::uint64_t key);
  void grow_ring();

  SelectorConfig sampling_;
  std::unique_ptr<Selector> sampler_; // null: uniform over a ring
  std::unique_ptr<Selector> remover_; // null: a ring
  bool keeps_priorities_;
  std::vector<ItemWindow> windows_; // by place, as are the next three
  std::vector<std::uint32_t> times_;
  std::vector<double> priorities_;  // empty unless keeps_priorities_
  std::vector<std::uint64_t> keys_; // empty in a ring
  std::vector<Place> free_places_;
  KeyIndex index_;
  std::uint64_t begin_ = 0; // ring: the oldest item's key
  std::uint64_t end_ = 0;
  std::int64_t times_of_all_ = 0;
};

} // namespace troupe::replay
