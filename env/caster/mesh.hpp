#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "env/caster/bvh.hpp"

namespace troupe::env::caster {

/// What rays need of a mesh or a skin: pointers into its owner's arrays. Corners of triangle i (in
/// the leaves' order) are vertices triangles[i].corner, their normals normals[normal_corners[4 i]
/// and on], their texture coordinates coordinates[coordinate_corners[4 i] and on].
struct MeshView {
  const BvhNode* nodes = nullptr; // null: nothing is drawn
  const BvhTriangle* triangles = nullptr;
  const float* vertices = nullptr; // [vertices, 4]: x, y, z, unused; metres
  const float* normals = nullptr;  // [normals, 4]
  const std::int32_t* normal_corners = nullptr;
  const float* coordinates = nullptr; // [coordinates, 2]: u, v; null: none
  const std::int32_t* coordinate_corners = nullptr;
  // How many there are of each.
  std::int32_t node_count = 0;
  std::int32_t triangle_count = 0;
  std::int32_t vertex_count = 0;
  std::int32_t normal_count = 0;
  std::int32_t coordinate_count = 0;
};

/// The arrays of a view's owner, by the names of the view.
struct MeshArrays {
  const std::vector<BvhNode>& nodes;
  const std::vector<BvhTriangle>& triangles;
  const std::vector<float>& vertices;
  const std::vector<float>& normals;
  const std::vector<std::int32_t>& normal_corners;
  const std::vector<float>& coordinates; // empty: none
  const std::vector<std::int32_t>& coordinate_corners;
};
MeshView view_of(const MeshArrays& arrays); // without nodes: of nothing

/// One of the model's meshes, in its own frame. Immutable.
///
/// Normals are MuJoCo's: of the vertices; where a mesh has no texture coordinates, that of the face
/// where the vertex's differs from it by more than 37 degrees (cosine .8).
class Mesh {
public:
  /// Corner numbers that no vertex has, and triangles that are not finite, are left out.
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

/// All meshes of a model, each built at its first use: the suite's dog has 162, of which the
/// pictures show a few. Any thread.
class Meshes {
public:
  explicit Meshes(const mjModel& model); // must outlive this
  ~Meshes();
  Meshes(const Meshes&) = delete;
  Meshes& operator=(const Meshes&) = delete;

  /// `number`: 0 to model.nmesh - 1; others show nothing.
  MeshView view(int number) const;

private:
  struct Entry;
  const mjModel& model_;
  std::unique_ptr<Entry[]> entries_;
};

} // namespace troupe::env::caster
