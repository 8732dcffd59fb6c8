#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <vector>

#include "env/caster/mesh.hpp"

namespace troupe::env::caster {

/// The faces of one of the model's flexes (cloth, soft bodies) in the world frame, as
/// mjv_updateScene lists them for the current state. Not thread-safe.
class Flex {
public:
  /// Reads the faces of flex `number` from `scene`. Allocates when the triangles change. The
  /// positions may contain any numbers; triangles that are not finite are not drawn.
  void update(const mjvScene& scene, int number);

  MeshView view() const; // of the last update; empty if only edges are drawn

private:
  void list_faces(const mjvScene& scene, int first, std::size_t faces);

  std::size_t faces_ = 0;
  std::vector<BvhTriangle> triangles_; // in the tree's order
  std::vector<BvhNode> nodes_;
  std::vector<std::int32_t> corners_; // [triangles, 4]: the vertex indices of triangles_
  std::vector<float> vertices_;       // [3 faces, 4]
  std::vector<float> normals_;        // [3 faces, 4], unit
  std::vector<float> coordinates_;    // [3 faces, 2]
};

/// Whether MuJoCo draws the flex by its faces. If not, it draws the edges and vertices.
bool has_faces(const mjvScene& scene, const mjvGeom& flex);

/// Makes edge or vertex `number` of a flex without faces a cylinder or a sphere. Returns false
/// after the last one.
bool flex_part(const mjvScene& scene, const mjvGeom& flex, int number, mjvGeom& part);

/// Calls add(geom) for each part of a flex: for the flex itself if it has faces, else for each edge
/// and vertex.
template <class Add>
void for_each_flex_part(const mjvScene& scene, const mjvGeom& flex, const Add& add) {
  if (has_faces(scene, flex))
    return add(flex);
  mjvGeom part = flex;
  for (int i = 0; flex_part(scene, flex, i, part); ++i)
    add(part);
}

} // namespace troupe::env::caster
