#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <vector>

#include "env/caster/mesh.hpp"

namespace troupe::env::caster {

/// The faces of one of the model's flexes (cloth, soft bodies) as mjv_updateScene lists them for
/// the present state, in the world's frame. One thread at a time.
class Flex {
public:
  /// Allocates when the triangles change. Any numbers are safe; triangles that are
  /// not finite vanish.
  void update(const mjvScene& scene, int number);

  MeshView view() const; // of the last update; nothing where only edges are drawn

private:
  void list_faces(const mjvScene& scene, int first, std::size_t faces);

  std::size_t faces_ = 0;
  std::vector<BvhTriangle> triangles_; // in the tree's order
  std::vector<BvhNode> nodes_;
  std::vector<std::int32_t> corners_; // [triangles, 4]: the same corners once more
  std::vector<float> vertices_;       // [3 faces, 4]
  std::vector<float> normals_;        // [3 faces, 4], unit
  std::vector<float> coordinates_;    // [3 faces, 2]
};

/// Whether MuJoCo draws the flex by its faces; else by its edges and vertices.
bool has_faces(const mjvScene& scene, const mjvGeom& flex);

/// Edge or vertex `number` of a flex without faces, as a cylinder or a ball; false beyond the last.
bool flex_part(const mjvScene& scene, const mjvGeom& flex, int number, mjvGeom& part);

/// Calls add(geom) for each part of a flex: itself if it has faces, else its edges and vertices.
template <class Add>
void for_each_flex_part(const mjvScene& scene, const mjvGeom& flex, const Add& add) {
  if (has_faces(scene, flex))
    return add(flex);
  mjvGeom part = flex;
  for (int i = 0; flex_part(scene, flex, i, part); ++i)
    add(part);
}

} // namespace troupe::env::caster
