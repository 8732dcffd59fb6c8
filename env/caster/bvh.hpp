#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::env::caster {

/// A box around triangles. Inner nodes (count 0) have their two children at `first` and first + 1;
/// leaves have `count` triangles from `first` on. Children come after their parents.
struct BvhNode {
  float low[3];
  std::int32_t first;
  float high[3];
  std::int32_t count;
};

inline constexpr int kBvhDepth = 48; // at most; what a traversal's stack must hold

/// Three corners by number, and the triangle's number in the model.
struct BvhTriangle {
  std::int32_t corner[3];
  std::int32_t face;
};

/// Boxes in boxes over triangles, by the surface-area heuristic. `triangles` is put into the order
/// of the leaves. `vertices`: [count, 4] floats (x, y, z, unused). Leaves out triangles with
/// numbers that are not finite; without triangles there are no nodes.
std::vector<BvhNode> build_bvh(std::vector<BvhTriangle>& triangles,
                               std::span<const float> vertices);

/// Refits the boxes of a tree to moved vertices. No allocation. Any numbers are safe:
/// boxes around NaN hold the other corners.
void refit_bvh(std::span<BvhNode> nodes, std::span<const BvhTriangle> triangles,
               std::span<const float> vertices);

} // namespace troupe::env::caster
