#include "env/caster/cuda/kept_scene.hpp"

namespace troupe::env::caster {

namespace {

template <class T>
std::span<const std::byte> bytes_of(const T* values, std::size_t count) {
  return std::as_bytes(std::span<const T>(values, count));
}

std::size_t range_count(const HeightFieldView& field) {
  return static_cast<std::size_t>(field.offset[static_cast<std::size_t>(field.levels - 1)]) + 2;
}

} // namespace

KeptScene::KeptScene(const CasterModel& model, SceneMemory& memory) : memory_(memory) {
  views_.reserve(model.textures().size()); // in-place readers keep pointers to them
  for (const Texture& texture : model.textures()) {
    TextureView view = texture;
    view.first_texel = keep(texture.texels.data(), texture.texels.size());
    views_.push_back(view);
    textures_[&texture] =
        reinterpret_cast<const TextureView*>(memory_.keep(bytes_of(&views_.back(), 1)));
  }
}

template <class T>
const T* KeptScene::keep(const T* values, std::size_t count) {
  if (values == nullptr || count == 0)
    return nullptr;
  auto entry = kept_.find(values);
  if (entry == kept_.end())
    entry = kept_.emplace(values, memory_.keep(bytes_of(values, count))).first;
  return reinterpret_cast<const T*>(entry->second);
}

bool KeptScene::has(const Frame& frame, const MovingParts& parts) const {
  for (const HeightField& field : parts.fields) {
    if (field.view().heights == nullptr)
      continue;
    const auto found = fields_.find(&field.view());
    if (found == fields_.end() || found->second.version != field.version())
      return false;
  }
  for (const Shape& shape : frame.shapes) {
    if (shape.kind != ShapeKind::mesh && shape.kind != ShapeKind::skin)
      continue;
    // The other arrays of a mesh are kept together with its triangles.
    const void* with = shape.mesh.triangles;
    if (shape.kind == ShapeKind::mesh && shape.mesh.node_count > 0)
      with = shape.mesh.nodes;
    if (with != nullptr && !kept_.contains(with))
      return false;
  }
  return true;
}

const TextureView* KeptScene::texture(const TextureView* texture) const {
  return texture == nullptr ? nullptr : textures_.at(texture);
}

MeshView KeptScene::still_parts(const MeshView& skin) {
  MeshView view = skin;
  const auto triangles = static_cast<std::size_t>(skin.triangle_count);
  view.normal_corners = keep(skin.normal_corners, 4 * triangles);
  view.coordinates = keep(skin.coordinates, 2 * static_cast<std::size_t>(skin.coordinate_count));
  view.coordinate_corners = keep(skin.coordinate_corners, 4 * triangles);
  view.triangles = keep(skin.triangles, triangles); // last, because has() looks for it
  return view;
}

MeshView KeptScene::mesh(const MeshView& mesh) {
  MeshView view = still_parts(mesh);
  view.vertices = keep(mesh.vertices, 4 * static_cast<std::size_t>(mesh.vertex_count));
  view.normals = keep(mesh.normals, 4 * static_cast<std::size_t>(mesh.normal_count));
  view.nodes = keep(mesh.nodes,
                    static_cast<std::size_t>(mesh.node_count)); // last, because has() looks for it
  return view;
}

void KeptScene::update(const HeightField& field) {
  const HeightFieldView& from = field.view();
  if (from.heights == nullptr)
    return;
  const std::size_t heights =
      static_cast<std::size_t>(from.rows) * static_cast<std::size_t>(from.columns);
  Field& to = fields_[&from];
  if (to.at != nullptr && to.version == field.version())
    return;
  const auto old = to.view;
  to.version = field.version();
  to.view = from;
  if (to.at == nullptr) {
    to.view.heights = keep(from.heights, heights);
    to.view.ranges = keep(from.ranges, range_count(from));
    to.at = reinterpret_cast<const HeightFieldView*>(memory_.keep(bytes_of(&to.view, 1)));
    return;
  }
  to.view.heights = old.heights;
  to.view.ranges = old.ranges;
  memory_.replace(reinterpret_cast<const std::byte*>(old.heights), bytes_of(from.heights, heights));
  memory_.replace(reinterpret_cast<const std::byte*>(old.ranges),
                  bytes_of(from.ranges, range_count(from)));
  memory_.replace(reinterpret_cast<const std::byte*>(to.at), bytes_of(&to.view, 1));
}

const HeightFieldView* KeptScene::field(const HeightFieldView* field) const {
  return field == nullptr ? nullptr : fields_.at(field).at;
}

} // namespace troupe::env::caster
