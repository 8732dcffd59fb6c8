#include "env/caster/bvh.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace troupe::env::caster {

namespace {

constexpr float kInfiniteFloat = std::numeric_limits<float>::infinity();
constexpr int kLeafTriangles = 4;
constexpr int kBins = 16;
constexpr int kSahDepth = 32; // deeper nodes are halved: 2^31 triangles stay within kBvhDepth

struct Box {
  std::array<float, 3> low{kInfiniteFloat, kInfiniteFloat, kInfiniteFloat};
  std::array<float, 3> high{-kInfiniteFloat, -kInfiniteFloat, -kInfiniteFloat};

  void add(const float* point) {
    for (std::size_t k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], point[k]);
      high[k] = std::max(high[k], point[k]);
    }
  }
  void add(const Box& box) {
    for (std::size_t k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], box.low[k]);
      high[k] = std::max(high[k], box.high[k]);
    }
  }
  float half_area() const {
    const float x = high[0] - low[0];
    const float y = high[1] - low[1];
    const float z = high[2] - low[2];
    return x < 0 ? 0 : x * y + y * z + z * x;
  }
};

const float* vertex(std::span<const float> vertices, std::int32_t number) {
  return vertices.data() + 4 * static_cast<std::size_t>(number);
}

Box box_of(const BvhTriangle& triangle, std::span<const float> vertices) {
  Box box;
  for (const std::int32_t corner : triangle.corner)
    box.add(vertex(vertices, corner));
  return box;
}

void store(const Box& box, BvhNode& node) {
  std::copy_n(box.low.begin(), 3, node.low);
  std::copy_n(box.high.begin(), 3, node.high);
}

class Builder {
public:
  Builder(std::vector<BvhTriangle>& triangles, std::span<const float> vertices)
      : triangles_(triangles), order_(triangles.size()) {
    std::iota(order_.begin(), order_.end(), 0U);
    for (const BvhTriangle& triangle : triangles)
      boxes_.push_back(box_of(triangle, vertices));
  }

  std::vector<BvhNode> build() {
    nodes_.push_back({});
    split(0, 0, order_.size(), 0);
    std::vector<BvhTriangle> sorted;
    sorted.reserve(order_.size());
    for (const std::uint32_t number : order_)
      sorted.push_back(triangles_[number]);
    triangles_ = std::move(sorted);
    return std::move(nodes_);
  }

private:
  float middle(std::uint32_t triangle, std::size_t axis) const {
    return .5F * (boxes_[triangle].low[axis] + boxes_[triangle].high[axis]);
  }

  void split(std::size_t at, std::size_t from, std::size_t to, int depth) {
    Box box;
    Box middles;
    for (std::size_t i = from; i < to; ++i) {
      box.add(boxes_[order_[i]]);
      const float point[3] = {middle(order_[i], 0), middle(order_[i], 1), middle(order_[i], 2)};
      middles.add(point);
    }
    store(box, nodes_[at]);
    nodes_[at].first = static_cast<std::int32_t>(from);
    nodes_[at].count = static_cast<std::int32_t>(to - from);
    if (to - from <= static_cast<std::size_t>(kLeafTriangles))
      return;
    std::size_t cut = depth < kSahDepth ? sah_cut(middles, from, to) : from;
    if (cut == from || cut == to)
      cut = median_cut(middles, from, to);
    const std::size_t child = nodes_.size();
    nodes_.push_back({});
    nodes_.push_back({});
    nodes_[at].first = static_cast<std::int32_t>(child);
    nodes_[at].count = 0;
    split(child, from, cut, depth + 1);
    split(child + 1, cut, to, depth + 1);
  }

  static std::size_t widest(const Box& middles) {
    std::size_t axis = 0;
    for (std::size_t k = 1; k < 3; ++k)
      if (middles.high[k] - middles.low[k] > middles.high[axis] - middles.low[axis])
        axis = k;
    return axis;
  }

  std::size_t median_cut(const Box& middles, std::size_t from, std::size_t to) {
    const std::size_t axis = widest(middles);
    const std::size_t cut = from + (to - from) / 2;
    std::nth_element(order_.begin() + static_cast<std::ptrdiff_t>(from),
                     order_.begin() + static_cast<std::ptrdiff_t>(cut),
                     order_.begin() + static_cast<std::ptrdiff_t>(to),
                     [&](std::uint32_t a, std::uint32_t b) {
                       const float p = middle(a, axis);
                       const float q = middle(b, axis);
                       return p < q || (p == q && a < b);
                     });
    return cut;
  }

  /// Partitions at the cheapest of kBins - 1 cuts along the axis on which the triangles' centres
  /// are spread the widest.
  std::size_t sah_cut(const Box& middles, std::size_t from, std::size_t to) {
    const std::size_t axis = widest(middles);
    const float low = middles.low[axis];
    const float width = middles.high[axis] - low;
    if (!(width > 0))
      return from;
    const auto bin = [&](std::uint32_t triangle) {
      const float place = (middle(triangle, axis) - low) / width * kBins;
      return static_cast<std::size_t>(std::clamp(static_cast<int>(place), 0, kBins - 1));
    };
    std::array<Box, kBins> boxes;
    std::array<int, kBins> counts{};
    for (std::size_t i = from; i < to; ++i) {
      boxes[bin(order_[i])].add(boxes_[order_[i]]);
      ++counts[bin(order_[i])];
    }
    std::array<float, kBins> above{}; // cost of bins i and up
    Box box;
    int count = 0;
    for (std::size_t i = kBins - 1; i > 0; --i) {
      box.add(boxes[i]);
      count += counts[i];
      above[i] = box.half_area() * static_cast<float>(count);
    }
    box = {};
    count = 0;
    float best = kInfiniteFloat;
    std::size_t best_cut = 0;
    for (std::size_t i = 1; i < kBins; ++i) {
      box.add(boxes[i - 1]);
      count += counts[i - 1];
      const float cost = box.half_area() * static_cast<float>(count) + above[i];
      if (cost < best) {
        best = cost;
        best_cut = i;
      }
    }
    const auto part =
        std::partition(order_.begin() + static_cast<std::ptrdiff_t>(from),
                       order_.begin() + static_cast<std::ptrdiff_t>(to),
                       [&](std::uint32_t triangle) { return bin(triangle) < best_cut; });
    return static_cast<std::size_t>(part - order_.begin());
  }

  std::vector<BvhTriangle>& triangles_;
  std::vector<std::uint32_t> order_;
  std::vector<Box> boxes_;
  std::vector<BvhNode> nodes_;
};

} // namespace

std::vector<BvhNode> build_bvh(std::vector<BvhTriangle>& triangles,
                               std::span<const float> vertices) {
  std::erase_if(triangles, [&](const BvhTriangle& triangle) {
    return std::any_of(std::begin(triangle.corner), std::end(triangle.corner), [&](auto corner) {
      const float* at = vertex(vertices, corner);
      return !std::isfinite(at[0]) || !std::isfinite(at[1]) || !std::isfinite(at[2]);
    });
  });
  if (triangles.empty())
    return {};
  return Builder(triangles, vertices).build();
}

void refit_bvh(std::span<BvhNode> nodes, std::span<const BvhTriangle> triangles,
               std::span<const float> vertices) {
  for (std::size_t i = nodes.size(); i-- > 0;) {
    BvhNode& node = nodes[i];
    if (node.count == 0) {
      const BvhNode& left = nodes[static_cast<std::size_t>(node.first)];
      const BvhNode& right = nodes[static_cast<std::size_t>(node.first) + 1];
      for (std::size_t k = 0; k < 3; ++k) {
        node.low[k] = std::min(left.low[k], right.low[k]);
        node.high[k] = std::max(left.high[k], right.high[k]);
      }
      continue;
    }
    Box box;
    for (std::int32_t t = node.first; t < node.first + node.count; ++t)
      box.add(box_of(triangles[static_cast<std::size_t>(t)], vertices));
    store(box, node);
  }
}

} // namespace troupe::env::caster
