#include "replay/table/sum_tree.hpp"

#include <algorithm>

namespace troupe::replay {

namespace {
constexpr std::size_t kFirstNodes = 8;
}

void SumTree::grow() {
  const std::size_t nodes = levels_.empty() ? kFirstNodes : 2 * levels_[0].size();
  std::vector<Node> leaves = levels_.empty() ? std::vector<Node>{} : std::move(levels_[0]);
  leaves.resize(nodes);
  levels_.clear();
  levels_.push_back(std::move(leaves));
  while (levels_.back().size() > 1) {
    const std::vector<Node>& below = levels_.back();
    std::vector<Node> above((below.size() + 7) / 8);
    for (std::size_t i = 0; i < below.size(); ++i)
      above[i / 8].child[i % 8] = sum(below[i]);
    levels_.push_back(std::move(above));
  }
}

void SumTree::refresh(std::size_t node) {
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level, node /= 8)
    levels_[level + 1][node / 8].child[node % 8] = sum(levels_[level][node]);
}

void SumTree::push_back(double weight) {
  if (levels_.empty() || size_ == 8 * levels_[0].size())
    grow();
  set(size_++, weight);
}

void SumTree::pop_back() {
  set(--size_, 0);
}

void SumTree::set(std::size_t position, double weight) {
  double& held = levels_[0][position / 8].child[position % 8];
  if (held == weight)
    return;
  held = weight;
  refresh(position / 8);
}

void SumTree::set(std::span<std::uint32_t> positions, std::span<const double> weights) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    levels_[0][positions[i] / 8].child[positions[i] % 8] = weights[i];
    positions[i] /= 8;
  }
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
    const std::vector<Node>& below = levels_[level];
    std::vector<Node>& above = levels_[level + 1];
    if (below.size() <= positions.size()) {
      for (std::size_t node = 0; node < below.size(); ++node)
        above[node / 8].child[node % 8] = sum(below[node]);
      continue;
    }
    for (std::uint32_t& node : positions) {
      above[node / 8].child[node % 8] = sum(below[node]);
      node /= 8;
    }
  }
}

/// Returns the child whose part contains the value, and subtracts the children before it from the
/// value.
std::size_t SumTree::descend(const Node& node, double& value) {
  std::array<double, 8> before{}; // sum of the children before each
  for (std::size_t i = 1; i < 8; ++i)
    before[i] = before[i - 1] + node.child[i - 1];
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < 8; ++i)
    chosen += value >= before[i] ? 1 : 0;
  // Rounding may have carried the value past the sum; then take the last child that is not empty.
  while (chosen > 0 && node.child[chosen] == 0)
    --chosen;
  value = std::max(0.0, value - before[chosen]);
  return chosen;
}

std::size_t SumTree::find(double value) const {
  std::size_t node = 0;
  for (std::size_t level = levels_.size(); level-- > 0;)
    node = 8 * node + descend(levels_[level][node], value);
  return node;
}

void SumTree::find(std::span<double> values, std::span<std::uint32_t> positions) const {
  std::fill(positions.begin(), positions.end(), 0);
  for (std::size_t level = levels_.size(); level-- > 0;) {
    const std::vector<Node>& nodes = levels_[level];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t next =
          8 * std::size_t{positions[i]} + descend(nodes[positions[i]], values[i]);
      positions[i] = static_cast<std::uint32_t>(next);
      if (level > 0)
        __builtin_prefetch(&levels_[level - 1][next]);
    }
  }
}

} // namespace troupe::replay
