#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::env::caster {

/// A node of a bounding volume hierarchy (BVH): a box around triangles. Inner nodes have count 0
/// and their two children at `first` and first + 1. Leaves have `count` triangles, starting at
/// `first`. Children come after their parents.
struct BvhNode {
  float low[3];
  std::int32_t first;
  float high[3];
  std::int32_t count;
};

inline constexpr int kBvhDepth = 48; // maximum depth; a traversal needs a stack of this size

/// The indices of three vertices, and the triangle's index in the model.
struct BvhTriangle {
  std::int32_t corner[3];
  std::int32_t face;
};

/// Builds a bounding volume hierarchy over `triangles` with the surface-area heuristic and sorts
/// them into the order of the leaves. `vertices`: [count, 4] floats (x, y, z, unused). Removes
/// triangles with vertices that are not finite; returns no nodes if none are left.
std::vector<BvhNode> build_bvh(std::vector<BvhTriangle>& triangles,
                               std::span<const float> vertices);

/// Refits the boxes of a tree to moved vertices. Does not allocate. Vertices may contain any
/// numbers: a box ignores NaN and bounds the other vertices.
void refit_bvh(std::span<BvhNode> nodes, std::span<const BvhTriangle> triangles,
               std::span<const float> vertices);

} // namespace troupe::env::caster
