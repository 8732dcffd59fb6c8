#pragma once

#include <cstdint>
#include <vector>

#include "replay/table/selector.hpp"
#include "replay/table/sum_tree.hpp"

namespace troupe::replay {

// clang-format off
/// SelectorKind::prioritized with fading: a place is chosen with a probability proportional to
///   priority^exponent * max(fade^age, least_fade),  age = number of places inserted after it.
// clang-format on
/// Young places, whose factor is still above least_fade, are in one sum tree, old ones in another.
/// Each place moves once, from the first tree to the second. The weights in the first tree grow
/// with the position, so an insertion changes no other weight; the sums are rescaled when they are
/// read. Every call takes O(log n), except that insert() and erase() occasionally compact the first
/// tree, which rewrites all young places.
///
/// Only the place that was inserted first may be erased, so the table's remover must be fifo.
class FadedSelector : public Selector {
public:
  explicit FadedSelector(const SelectorConfig& config);

  void insert(std::uint32_t place, double priority) override;
  void erase(std::uint32_t place) override;
  using Selector::update;
  void update(std::uint32_t place, double priority) override;
  using Selector::select;
  Selected select(Random& random) const override;
  std::size_t size() const override { return young_.size() - first_ + old_.size(); }
  double total() const override;
  void order(std::vector<std::uint32_t>& out) const override;

private:
  using Place = std::uint32_t;
  struct Where {
    bool old = false;
    std::uint32_t position = 0;
  };
  struct Young {
    Place place = 0;
    double weight = 0; // without the fading factor
  };

  double growth(std::size_t position) const;
  double young_scale() const; // scales the sums of young_tree_ to true weights
  void retire();              // moves the oldest young place to the old ones
  void compact();

  SelectorConfig config_;
  std::size_t fading_ = 0;   // number of ages whose factor is above least_fade
  std::vector<Where> where_; // by place
  std::vector<Young> young_; // oldest first; the entries before first_ are erased or old
  std::size_t first_ = 0;
  SumTree young_tree_; // by position in young_
  std::vector<Place> old_;
  SumTree old_tree_; // by position in old_, without the factor
};

/// Returns the fade for each of `shards` shards that receive insertions in turn. Each shard sees
/// only one insertion in `shards`, so it needs a stronger fade for items to fade as in a single
/// table.
double fade_of_shard(double fade, int shards);

} // namespace troupe::replay
