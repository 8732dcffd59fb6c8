#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "env/caster/mesh.hpp"

namespace troupe::env::caster {

/// A skin of the model in its bind pose: triangles, weights by vertex, and a tree whose boxes are
/// refitted to each pose. Immutable, any thread.
class SkinModel {
public:
  /// Corner, vertex and body numbers out of range are left out.
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
  float inflate_ = 0; // metres along the normals
  std::vector<Bone> bones_;
  std::vector<float> rest_;                   // [vertices, 4]
  std::vector<std::int32_t> first_influence_; // [vertices + 1]
  std::vector<Influence> influences_;
  std::vector<BvhTriangle> triangles_; // in the tree's order
  std::vector<BvhNode> nodes_;
  std::vector<std::int32_t> corners_; // [triangles, 4]: the same corners once more
  std::vector<float> coordinates_;    // [vertices, 2]; empty: none
};

/// Box around a pose, metres; low > high when there is nothing to see.
struct SkinBounds {
  float low[3];
  float high[3];
};

/// A skin in its present pose, as MuJoCo moves it: each vertex the weighted mean of where its bones
/// take it, normals the means of the faces' by area, then inflated along them. One thread at a
/// time; pose() does not allocate.
class Skin {
public:
  explicit Skin(std::shared_ptr<const SkinModel> model);

  /// Moves it to where `data`'s bodies are. Any numbers are safe; vertices that are not finite make
  /// their triangles vanish.
  void pose(const mjData& data);

  MeshView view() const; // of the last pose, relative to origin(); valid while this object exists
  SkinBounds bounds() const; // of the last pose, relative to origin()
  /// World position of its first bone's body, from which its vertices are measured: small numbers.
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
