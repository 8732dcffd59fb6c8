#include "env/caster/mesh.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <optional>

namespace troupe::env::caster {

namespace {

constexpr float kSmooth = .8F; // a corner keeps its vertex's normal from this cosine on

using Vector = std::array<float, 3>;

Vector face_normal(const float* a, const float* b, const float* c) {
  const Vector p{b[0] - a[0], b[1] - a[1], b[2] - a[2]};
  const Vector q{c[0] - a[0], c[1] - a[1], c[2] - a[2]};
  const Vector n{p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]};
  const float length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
  if (!(length > 1e-30F))
    return {0, 0, 1};
  return {n[0] / length, n[1] / length, n[2] / length};
}

std::vector<float> pad_to_four(const float* from, int count) {
  std::vector<float> to(4 * static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t i = 0; i < to.size() / 4; ++i)
    std::copy_n(from + 3 * i, 3, to.begin() + static_cast<std::ptrdiff_t>(4 * i));
  return to;
}

bool within(const int* three, int count) {
  return std::all_of(three, three + 3, [&](int number) { return number >= 0 && number < count; });
}

} // namespace

Mesh::Mesh(const mjModel& model, int number) {
  const int faces = model.mesh_facenum[number];
  const std::size_t first = 3 * static_cast<std::size_t>(model.mesh_faceadr[number]);
  const int* corners = model.mesh_face + first;
  const int* normal_corners = model.mesh_facenormal + first;
  const int* coordinate_corners = model.mesh_facetexcoord + first;
  const int vertex_count = model.mesh_vertnum[number];
  const int normal_count = model.mesh_normalnum[number];
  const bool has_coordinates = model.mesh_texcoordadr[number] >= 0;
  const int coordinate_count = has_coordinates ? model.mesh_texcoordnum[number] : 0;
  vertices_ = pad_to_four(model.mesh_vert + 3 * model.mesh_vertadr[number], vertex_count);
  normals_ = pad_to_four(model.mesh_normal + 3 * model.mesh_normaladr[number], normal_count);
  if (has_coordinates)
    coordinates_.assign(model.mesh_texcoord + 2 * model.mesh_texcoordadr[number],
                        model.mesh_texcoord
                            + 2 * (model.mesh_texcoordadr[number] + coordinate_count));

  for (int face = 0; face < faces; ++face)
    if (within(corners + 3 * face, vertex_count) && within(normal_corners + 3 * face, normal_count)
        && (!has_coordinates || within(coordinate_corners + 3 * face, coordinate_count)))
      triangles_.push_back(
          {{corners[3 * face], corners[3 * face + 1], corners[3 * face + 2]}, face});
  nodes_ = build_bvh(triangles_, vertices_);

  for (const BvhTriangle& triangle : triangles_) {
    const std::size_t from = 3 * static_cast<std::size_t>(triangle.face);
    const auto vertex = [&](int k) { return vertices_.data() + 4 * triangle.corner[k]; };
    const Vector flat = face_normal(vertex(0), vertex(1), vertex(2));
    std::int32_t own = -1; // index of the face's normal, once it is needed
    for (std::size_t k = 0; k < 3; ++k) {
      std::int32_t normal = normal_corners[from + k];
      const float* smooth = normals_.data() + 4 * normal;
      const float cosine = smooth[0] * flat[0] + smooth[1] * flat[1] + smooth[2] * flat[2];
      if (!has_coordinates && !(cosine >= kSmooth)) {
        if (own < 0) {
          own = static_cast<std::int32_t>(normals_.size() / 4);
          normals_.insert(normals_.end(), {flat[0], flat[1], flat[2], 0});
        }
        normal = own;
      }
      normal_corners_.push_back(normal);
      if (has_coordinates)
        coordinate_corners_.push_back(coordinate_corners[from + k]);
    }
    normal_corners_.push_back(0);
    if (has_coordinates)
      coordinate_corners_.push_back(0);
  }
}

MeshView view_of(const MeshArrays& arrays) {
  MeshView view;
  if (arrays.nodes.empty())
    return view;
  view.nodes = arrays.nodes.data();
  view.triangles = arrays.triangles.data();
  view.vertices = arrays.vertices.data();
  view.normals = arrays.normals.data();
  view.normal_corners = arrays.normal_corners.data();
  if (!arrays.coordinates.empty()) {
    view.coordinates = arrays.coordinates.data();
    view.coordinate_corners = arrays.coordinate_corners.data();
  }
  view.node_count = static_cast<std::int32_t>(arrays.nodes.size());
  view.triangle_count = static_cast<std::int32_t>(arrays.triangles.size());
  view.vertex_count = static_cast<std::int32_t>(arrays.vertices.size() / 4);
  view.normal_count = static_cast<std::int32_t>(arrays.normals.size() / 4);
  view.coordinate_count = static_cast<std::int32_t>(arrays.coordinates.size() / 2);
  return view;
}

MeshView Mesh::view() const {
  return view_of({nodes_, triangles_, vertices_, normals_, normal_corners_, coordinates_,
                  coordinate_corners_});
}

struct Meshes::Entry {
  std::once_flag once;
  std::optional<Mesh> mesh;
};

Meshes::Meshes(const mjModel& model)
    : model_(model), entries_(std::make_unique<Entry[]>(static_cast<std::size_t>(model.nmesh))) {}

Meshes::~Meshes() = default;

MeshView Meshes::view(int number) const {
  if (number < 0 || number >= static_cast<int>(model_.nmesh))
    return {};
  Entry& entry = entries_[static_cast<std::size_t>(number)];
  std::call_once(entry.once, [&] { entry.mesh.emplace(model_, number); });
  return entry.mesh->view();
}

} // namespace troupe::env::caster
