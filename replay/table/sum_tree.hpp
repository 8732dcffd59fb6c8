#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::replay {

/// Weights at positions 0, 1, …, their sum, and the position at which a running sum passes a given
/// value. The tree has fan-out 8: a node is one cache line, and 10^7 weights need 8 levels. Every
/// change recomputes its nodes as pairwise sums of their children, so that the tree depends only on
/// the weights and rounding errors do not accumulate.
class SumTree {
public:
  std::size_t size() const { return size_; }
  double total() const { return levels_.empty() ? 0 : sum(levels_.back()[0]); }
  double weight(std::size_t position) const { return levels_[0][position / 8].child[position % 8]; }

  void push_back(double weight); // finite, not negative; O(log n) except for growth
  void pop_back();
  void set(std::size_t position, double weight);
  /// The same for many at once, which recomputes a node of several of them once or a few times. Of
  /// equal positions the last counts. Overwrites `positions`.
  void set(std::span<std::uint32_t> positions, std::span<const double> weights);
  void clear();

  /// The position whose part of [0, total()) contains `value`; never one of weight 0. The sum must
  /// be above 0.
  std::size_t find(double value) const;

  /// The same for many values at once, so that their cache misses overlap. Replaces values[i] by
  /// its remainder, positions[i] by the result.
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
