#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::replay {

/// Stores weights at positions 0, 1, …, and finds their sum and the position at which the running
/// sum passes a given value. The tree has fan-out 8: a node is one cache line, and 10^7 weights
/// need 8 levels. Every change recomputes the affected nodes as pairwise sums of their children, so
/// the tree depends only on the weights and rounding errors do not accumulate.
class SumTree {
public:
  std::size_t size() const { return size_; }
  double total() const { return levels_.empty() ? 0 : sum(levels_.back()[0]); }
  double weight(std::size_t position) const { return levels_[0][position / 8].child[position % 8]; }

  void push_back(double weight); // finite, not negative; O(log n) except for growth
  void pop_back();
  void set(std::size_t position, double weight);
  /// Sets many weights at once, which recomputes a shared ancestor only once or a few times. If a
  /// position occurs more than once, its last weight counts. Overwrites `positions`.
  void set(std::span<std::uint32_t> positions, std::span<const double> weights);

  /// Returns the position whose part of [0, total()) contains `value`; never one with weight 0. The
  /// total must be above 0.
  std::size_t find(double value) const;

  /// Finds many positions at once, so that their cache misses overlap. Sets positions[i] to the
  /// result and overwrites values[i] with a remainder.
  void find(std::span<double> values, std::span<std::uint32_t> positions) const;

private:
  struct alignas(64) Node {
    std::array<double, 8> child{};
  };

  static double sum(const Node& node) {
    const auto& c = node.child;
    return ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
  }
  static std::size_t descend(const Node& node, double& value);
  void refresh(std::size_t node); // updates the ancestors of a lowest-level node
  void grow();

  std::vector<std::vector<Node>> levels_; // levels_[0] holds the weights; the last is one node
  std::size_t size_ = 0;
};

} // namespace troupe::replay
