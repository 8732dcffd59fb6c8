#include "env/caster/flex.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace troupe::env::caster {

namespace {

bool is_flex(const mjvScene& scene, int number) {
  return number >= 0 && number < scene.nflex;
}

void place_edge(const float* a, const float* b, mjvGeom& edge) {
  mjtNum along[3];
  for (int k = 0; k < 3; ++k) {
    along[k] = static_cast<mjtNum>(b[k]) - static_cast<mjtNum>(a[k]);
    edge.pos[k] = .5F * (a[k] + b[k]);
  }
  const mjtNum length = mju_normalize3(along);
  mjtNum turn[4];
  mjtNum rotation[9];
  mju_quatZ2Vec(turn, along);
  mju_quat2Mat(rotation, turn);
  std::copy_n(rotation, 9, edge.mat);
  edge.size[1] = edge.size[0];
  edge.size[2] = static_cast<float>(.5 * length);
}

} // namespace

void Flex::list_faces(const mjvScene& scene, int first, std::size_t faces) {
  faces_ = faces;
  triangles_.clear();
  for (std::int32_t face = 0; face < static_cast<std::int32_t>(faces); ++face)
    triangles_.push_back({{3 * face, 3 * face + 1, 3 * face + 2}, face});
  const float* from = scene.flextexcoord + 6 * static_cast<std::size_t>(first);
  coordinates_.assign(from, from + 6 * faces);
  nodes_ = build_bvh(triangles_, vertices_);
  corners_.clear();
  for (const BvhTriangle& triangle : triangles_)
    corners_.insert(corners_.end(),
                    {triangle.corner[0], triangle.corner[1], triangle.corner[2], 0});
}

void Flex::update(const mjvScene& scene, int number) {
  const bool known = is_flex(scene, number);
  const int first = known ? scene.flexfaceadr[number] : 0;
  const auto faces =
      known ? static_cast<std::size_t>(std::max(scene.flexfaceused[number], 0)) : std::size_t{0};
  vertices_.resize(12 * faces);
  normals_.resize(12 * faces);
  const float* positions = scene.flexface + 9 * static_cast<std::size_t>(first);
  const float* normals = scene.flexnormal + 9 * static_cast<std::size_t>(first);
  for (std::size_t i = 0; i < 3 * faces; ++i) {
    const float* n = normals + 3 * i;
    const float length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const float scale = 1 / std::max(length, 1e-15F);
    for (std::size_t k = 0; k < 3; ++k) {
      vertices_[4 * i + k] = positions[3 * i + k];
      normals_[4 * i + k] = n[k] * scale;
    }
  }
  if (faces != faces_
      || triangles_.size() != faces) // or some were not finite when they were listed
    list_faces(scene, first, faces);
  else
    refit_bvh(nodes_, triangles_, vertices_);
}

MeshView Flex::view() const {
  return view_of({nodes_, triangles_, vertices_, normals_, corners_, coordinates_, corners_});
}

bool has_faces(const mjvScene& scene, const mjvGeom& flex) {
  return is_flex(scene, flex.objid) && scene.flexfaceused[flex.objid] > 0;
}

bool flex_part(const mjvScene& scene, const mjvGeom& flex, int number, mjvGeom& part) {
  const int id = flex.objid;
  if (!is_flex(scene, id) || !(flex.size[0] > 0))
    return false;
  const int edges = scene.flexedgeopt ? scene.flexedgenum[id] : 0;
  const int vertices = scene.flexvertopt ? scene.flexvertnum[id] : 0;
  const float* all = scene.flexvert + 3 * static_cast<std::size_t>(scene.flexvertadr[id]);
  part = flex;
  part.matid = -1; // without a texture
  part.texcoord = 0;
  if (number < edges) {
    part.type = mjGEOM_CYLINDER;
    const int* ends = scene.flexedge + 2 * (scene.flexedgeadr[id] + number);
    place_edge(all + 3 * ends[0], all + 3 * ends[1], part);
    return true;
  }
  if (number >= edges + vertices)
    return false;
  part.type = mjGEOM_SPHERE;
  std::copy_n(all + 3 * (number - edges), 3, part.pos);
  part.size[1] = part.size[2] = part.size[0];
  return true;
}

} // namespace troupe::env::caster
