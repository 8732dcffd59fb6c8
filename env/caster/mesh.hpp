#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "env/caster/bvh.hpp"

namespace troupe::env::caster {

/// The data of a mesh or skin that rays need: pointers into its owner's arrays. Triangles are in
/// the leaves' order. The corners of triangle i are the vertices triangles[i].corner. Their normals
/// and texture coordinates are at the indices normal_corners[4 i + k] and coordinate_corners[4 i +
/// k], k = 0 to 2.
struct MeshView {
  const BvhNode* nodes = nullptr; // null if nothing is drawn
  const BvhTriangle* triangles = nullptr;
  const float* vertices = nullptr; // [vertices, 4]: x, y, z, unused; metres
  const float* normals = nullptr;  // [normals, 4]
  const std::int32_t* normal_corners = nullptr;
  const float* coordinates = nullptr; // [coordinates, 2]: u, v; null if there are none
  const std::int32_t* coordinate_corners = nullptr;
  // The number of elements of each array.
  std::int32_t node_count = 0;
  std::int32_t triangle_count = 0;
  std::int32_t vertex_count = 0;
  std::int32_t normal_count = 0;
  std::int32_t coordinate_count = 0;
};

/// The arrays that a view points to, under the names they have in the view.
struct MeshArrays {
  const std::vector<BvhNode>& nodes;
  const std::vector<BvhTriangle>& triangles;
  const std::vector<float>& vertices;
  const std::vector<float>& normals;
  const std::vector<std::int32_t>& normal_corners;
  const std::vector<float>& coordinates; // empty if there are none
  const std::vector<std::int32_t>& coordinate_corners;
};
MeshView view_of(const MeshArrays& arrays); // empty if there are no nodes

/// One of the model's meshes, in its own frame. Immutable.
///
/// Its normals are MuJoCo's, one per vertex. In a mesh without texture coordinates, a corner gets
/// the normal of its face instead if the two differ by more than 37 degrees (cosine .8).
class Mesh {
public:
  /// Leaves out triangles that are not finite or have a corner index out of range.
  Mesh(const mjModel& model, int number);

  MeshView view() const;
  std::size_t triangles() const { return triangles_.size(); }

private:
  std::vector<BvhTriangle> triangles_;
  std::vector<BvhNode> nodes_;
  std::vector<float> vertices_;
  std::vector<float> normals_;
  std::vector<std::int32_t> normal_corners_;
  std::vector<float> coordinates_;
  std::vector<std::int32_t> coordinate_corners_;
};

/// All meshes of a model, each built at its first use: the suite's dog has 162, and its pictures
/// show only a few. Thread-safe.
class Meshes {
public:
  explicit Meshes(const mjModel& model); // must outlive this object
  ~Meshes();
  Meshes(const Meshes&) = delete;
  Meshes& operator=(const Meshes&) = delete;

  /// `number`: 0 to model.nmesh - 1; the view is empty for other numbers.
  MeshView view(int number) const;

private:
  struct Entry;
  const mjModel& model_;
  std::unique_ptr<Entry[]> entries_;
};

} // namespace troupe::env::caster
