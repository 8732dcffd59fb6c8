#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "env/caster/mesh.hpp"

namespace troupe::env::caster {

/// A skin of the model in its bind pose: triangles, bone weights of each vertex, and a tree whose
/// boxes are refitted to each pose. Immutable and thread-safe.
class SkinModel {
public:
  /// Leaves out faces and weights with vertex indices out of range. A bone whose body is out of
  /// range follows the world body.
  SkinModel(const mjModel& model, int number);

private:
  friend class Skin;
  struct Influence {
    std::int32_t bone;
    float weight;
  };
  struct Bone {
    std::int32_t body;
    float position[3]; // bind pose
    float quaternion[4];
  };
  int vertices_ = 0;
  float inflate_ = 0; // in metres along the normals
  std::vector<Bone> bones_;
  std::vector<float> rest_;                   // [vertices, 4]
  std::vector<std::int32_t> first_influence_; // [vertices + 1]
  std::vector<Influence> influences_;
  std::vector<BvhTriangle> triangles_; // in the tree's order
  std::vector<BvhNode> nodes_;
  std::vector<std::int32_t> corners_; // [triangles, 4]: the vertex indices of triangles_
  std::vector<float> coordinates_;    // [vertices, 2]; empty if there are none
};

/// A skin in its current pose, deformed as in MuJoCo. A vertex is the weighted mean of the
/// positions that its bones give it, and a normal is the area-weighted mean of the faces' normals.
/// Vertices are then inflated along their normals. Not thread-safe. pose() does not allocate.
class Skin {
public:
  explicit Skin(std::shared_ptr<const SkinModel> model);

  /// Deforms the skin to the poses of the bodies in `data`. The poses may contain any numbers;
  /// triangles with vertices that are not finite are not drawn.
  void pose(const mjData& data);

  MeshView view() const; // of the last pose, relative to origin(); valid while this object exists
  /// World position of the first bone's body. Vertices are relative to it, which keeps them small.
  const std::array<float, 3>& origin() const { return origin_; }
  const std::vector<float>& vertices() const { return vertices_; } // [vertices, 4], model's order
  const std::vector<float>& normals() const { return normals_; }   // [vertices, 4], unit

private:
  void move_vertices(const mjData& data);
  void make_normals();

  std::shared_ptr<const SkinModel> model_;
  std::array<float, 3> origin_{};
  std::vector<float> bones_; // [bones, 12]: columns of the rotation, then the translation
  std::vector<float> vertices_;
  std::vector<float> normals_;
  std::vector<BvhNode> nodes_;
};

} // namespace troupe::env::caster
