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
/// linked after it. Checkpoints contain these bytes.
struct ItemWindow {
  std::uint32_t chunk = 0; // index of the first chunk
  std::uint32_t begin = 0;
  std::uint32_t rows = 0;
  std::uint32_t history = 0;
  std::uint32_t shape = 0; // number in ItemShapes
};

/// The items of a checkpoint, by ascending key.
struct SavedItems {
  std::vector<ItemWindow> windows;
  std::vector<std::uint32_t> times;
  std::vector<double> priorities; // empty: 1 each
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> sampler, remover; // Selector::order(), as positions in these vectors
};

/// The items of a table: where each is, how often it was sampled, its priority, and the selectors
/// that choose among them. An item has a key (counts up) and a place (a small number, valid until
/// the next add() or remove()).
///
/// If the oldest item is always the one to remove, the items form a ring: key k has place k &
/// (places - 1), and uniform sampling needs no selector. Otherwise a hash index finds them.
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
  /// Fetches what is known of an item into the cache.
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
  /// How often the present items were sampled, in sum.
  std::int64_t times_sampled() const { return times_of_all_; }
  /// What the sampler chooses in proportion to: the number of items, or the sum of their weights.
  double total_weight() const { return sampler_ ? sampler_->total() : static_cast<double>(size()); }

  /// Returns the new item's place. Allocates only to grow.
  Place add(const ItemWindow& window, double priority);
  ItemWindow remove(Place place);
  Place choose_removal(Random& random) const; // of at least one item
  void set_priorities(std::span<const Place> places, std::span<const double> priorities);

  /// Chooses with replacement, of at least one item.
  void sample(Random& random, std::span<Selected> out) const;
  void count_sample(Place place) {
    ++times_[place];
    ++times_of_all_;
  }

  /// The order of the sampler's, and of the remover's, places (see Selector::order()); nothing
  /// without such a selector.
  const Selector* sampler() const { return sampler_.get(); }
  const Selector* remover() const { return remover_.get(); }

  /// Fills an empty table. `next_key`: of the item added next; a ring numbers the items down from
  /// it. With `same_selectors` the selectors continue exactly as the saved ones.
  void restore(const SavedItems& saved, std::uint64_t next_key, bool same_selectors);

private:
  Place new_place(std::uint64_t key);
  void grow_ring();

  std::unique_ptr<Selector> sampler_; // null: uniform over a ring
  std::unique_ptr<Selector> remover_; // null: a ring
  bool keeps_priorities_;
  std::vector<ItemWindow> windows_; // by place, as the three below
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
