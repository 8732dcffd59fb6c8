#pragma once

#include <cstdint>
#include <vector>

#include "replay/table/selector.hpp"
#include "replay/table/sum_tree.hpp"

namespace troupe::replay {

// clang-format off
/// SelectorKind::prioritized where old items fade: a place is chosen in proportion to
///   priority^exponent * max(fade^age, least_fade),  age = places inserted since.
// clang-format on
/// Places whose factor is still above least_fade are in one sum tree, the others in a second one.
/// A place moves once. Weights of the first tree grow with the position, so that no insertion
/// changes another weight; the sums are rescaled when they are read. O(log n), and one insertion
/// in every so many fading places rewrites these.
///
/// erase() takes the place that was inserted first, as a table's remover fifo does.
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
  void clear() override;
  void order(std::vector<std::uint32_t>& out) const override;

private:
  using Place = std::uint32_t;
  struct Where {
    bool old = false;
    std::uint32_t position = 0;
  };
  struct Young {
    Place place = 0;
    double weight = 0; // without its fading
  };

  double growth(std::size_t position) const;
  double young_scale() const; // what the weights of the first tree are to be multiplied by
  void retire();              // the oldest of the young ones
  void compact();

  SelectorConfig config_;
  std::size_t fading_ = 0;   // ages whose factor is above the least
  std::vector<Where> where_; // by place
  std::vector<Young> young_; // by age, the newest last; those before first_ are gone
  std::size_t first_ = 0;
  SumTree young_tree_; // by position in young_
  std::vector<Place> old_;
  SumTree old_tree_; // by position in old_, without the factor
};

/// The fade of each of so many shards that share the items in turn: a shard sees one insertion in
/// `shards`, so that an item fades there as it would in one table of all.
double fade_of_shard(double fade, int shards);

} // namespace troupe::replay
