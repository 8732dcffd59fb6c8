#include "env/caster/shape_builder.hpp"

#include <algorithm>
#include <cmath>

#include "env/caster/caster_model.hpp"
#include "env/caster/float3.hpp"

namespace troupe::env::caster {

namespace {

constexpr float kFromBehind = .3F; // a plane seen from behind has this fraction of its alpha

bool has_formula(ShapeKind kind) {
  return kind <= ShapeKind::box;
}

/// Sets the bounding box and capsule. For shapes without a formula, half_size and centre are
/// already set.
void set_bounds(Shape& shape) {
  if (has_formula(shape.kind)) {
    shape.centre = shape.position;
    shape.half_size = shape.size;
  }
  const Float3& size = shape.half_size;
  std::size_t longest = 2;
  float half = 0;
  if (shape.kind == ShapeKind::sphere) {
    shape.radius = size[0];
  } else if (shape.kind == ShapeKind::capsule || shape.kind == ShapeKind::cylinder) {
    shape.radius = size[0]; // the capsule around a cylinder encloses it
    half = size[2];
  } else if (shape.kind == ShapeKind::plane) {
    shape.radius = 1e9F;
  } else {
    longest = static_cast<std::size_t>(std::max_element(size.begin(), size.end()) - size.begin());
    const float second = size[(longest + 1) % 3];
    const float third = size[(longest + 2) % 3];
    const bool round = shape.kind == ShapeKind::ellipsoid;
    shape.radius = round ? std::max(second, third) : std::hypot(second, third);
    half = round ? size[longest] - shape.radius : size[longest];
  }
  shape.half_segment = column(shape.rotation, longest) * half;
}

/// Sets half_size and centre to the box from `low` to `high` in the shape's frame. Returns false if
/// the box is empty or not finite.
bool set_box(Shape& shape, const Float3& low, const Float3& high) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(low[i] <= high[i]) || !std::isfinite(high[i] - low[i]))
      return false;
    shape.half_size[i] = std::max(.5F * (high[i] - low[i]), 1e-6F);
  }
  shape.centre = shape.position + outward(shape.rotation, (low + high) * .5F);
  return true;
}

/// Sets the surface of a mesh, skin, flex or height field. Returns false if there is none.
bool set_surface(const mjvGeom& geom, const CasterModel& shared, const MovingParts& parts,
                 Shape& shape) {
  if (shape.kind == ShapeKind::height_field) {
    if (geom.dataid < 0 || geom.dataid >= static_cast<int>(parts.fields.size()))
      return false;
    const HeightField& field = parts.fields[static_cast<std::size_t>(geom.dataid)];
    shape.field = &field.view();
    const Float3 size = {shape.field->size[0], shape.field->size[1], shape.field->bottom};
    return shape.field->heights != nullptr
           && set_box(shape, size * -1, {size[0], size[1], std::max(field.highest(), -size[2])});
  }
  if (shape.kind == ShapeKind::mesh) {
    shape.mesh = shared.meshes().view(
        geom.dataid < 0 ? -1 : geom.dataid / 2); // odd numbers are convex hulls
  } else {
    const bool flex = geom.type == mjGEOM_FLEX;
    if (geom.objid < 0
        || static_cast<std::size_t>(geom.objid)
               >= (flex ? parts.flexes.size() : parts.skins.size()))
      return false;
    const auto number = static_cast<std::size_t>(geom.objid);
    shape.mesh = flex ? parts.flexes[number].view() : parts.skins[number].view();
    shape.position = flex ? Float3{} : parts.skins[number].origin();
    shape.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  }
  return shape.mesh.nodes != nullptr && all_finite(shape.position.data(), 3)
         && set_box(shape, float3(shape.mesh.nodes[0].low), float3(shape.mesh.nodes[0].high));
}

PlaneAxis plane_axis(float size, float grid) {
  constexpr float kMostLines = 198;
  PlaneAxis axis;
  axis.size = size;
  const float half_step = std::max(grid, size / kMostLines);
  int cells = half_step > 0 ? static_cast<int>(std::min(size / half_step, 1e4F)) : 0;
  cells -= cells % 2;
  axis.cells = cells;
  axis.step = 2 * half_step;
  axis.pad = size - static_cast<float>(cells) * half_step;
  axis.inverse_pad = axis.pad > 0 ? 1 / axis.pad : 0;
  axis.inverse_step = axis.step > 0 ? 1 / axis.step : 0;
  return axis;
}

void set_material(const CasterModel& shared, const mjvGeom& geom, Shape& shape) {
  std::copy_n(geom.rgba, 4, shape.rgba.begin());
  shape.emission = geom.emission;
  shape.specular = geom.specular;
  shape.reflectance = geom.reflectance;
  shape.half_exponent = .5F * std::clamp(geom.shininess * kMostExponent, 0.0F, kMostExponent);
  int log2 = 0;
  const float mantissa = std::frexp(shape.half_exponent, &log2);
  shape.squarings = mantissa == .5F && log2 >= 1 ? log2 - 1 : -1;
  // Below this the power is less than 1e-6. The cutoff also avoids subnormal numbers, which are
  // slow.
  shape.faintest = shape.half_exponent > 0 ? std::pow(1e-6F, 1 / shape.half_exponent) : 0;
  shape.mapping = map_texture(geom, shared.textures());
  if (shape.mapping.layout != TextureLayout::none)
    shape.texture = &shared.textures()[static_cast<std::size_t>(shape.mapping.texture)];
}

/// Infinite planes end where they do in MuJoCo: a few steps of their texture beyond the far plane.
/// mjv_updateScene has already moved them along with the camera.
void set_plane(const Camera& camera, Shape& shape) {
  constexpr float kLines = 198; // used without a texture
  const bool infinite[2] = {shape.size[0] <= 0, shape.size[1] <= 0};
  for (std::size_t k = 0; k < 2; ++k) {
    if (infinite[k]) {
      const float repeat = shape.texture != nullptr ? shape.mapping.scale[k] : 0;
      const float period = repeat > 0 ? 2 / repeat : 2.1F * camera.far / kLines;
      shape.size[k] = .5F * (2.1F * camera.far + 2 * period);
    }
    shape.axes[k] = plane_axis(shape.size[k], shape.size[2]);
  }
  shape.endless = infinite[0] && infinite[1];
  if (dot(camera.eye - shape.position, column(shape.rotation, 2)) < 0)
    shape.rgba[3] *= kFromBehind;
}

float bounding_radius(const mjvGeom& geom) {
  const float* size = geom.size;
  if (geom.modelrbound > 0)
    return geom.modelrbound;
  switch (geom.type) {
  case mjGEOM_SPHERE:
    return size[0];
  case mjGEOM_CAPSULE:
    return size[0] + size[2];
  case mjGEOM_CYLINDER:
    return std::hypot(size[0], size[2]);
  case mjGEOM_BOX:
    return std::hypot(size[0], size[1], size[2]);
  default:
    return std::max({size[0], size[1], size[2]});
  }
}

/// The distance by which MuJoCo sorts transparent objects; planes come after everything else.
float transparent_distance(const mjvGeom& geom, const Float3& eye) {
  constexpr float kPlanes = 1e10F;
  return geom.type == mjGEOM_PLANE ? kPlanes
                                   : length(float3(geom.pos) - eye) - bounding_radius(geom);
}

} // namespace

std::optional<ShapeKind> shape_kind(int geom_type) {
  switch (geom_type) {
  case mjGEOM_PLANE:
    return ShapeKind::plane;
  case mjGEOM_SPHERE:
    return ShapeKind::sphere;
  case mjGEOM_CAPSULE:
    return ShapeKind::capsule;
  case mjGEOM_ELLIPSOID:
    return ShapeKind::ellipsoid;
  case mjGEOM_CYLINDER:
    return ShapeKind::cylinder;
  case mjGEOM_BOX:
    return ShapeKind::box;
  case mjGEOM_MESH:
  case mjGEOM_SDF:
    return ShapeKind::mesh;
  case mjGEOM_HFIELD:
    return ShapeKind::height_field;
  case mjGEOM_SKIN:
  case mjGEOM_FLEX:
    return ShapeKind::skin;
  default:
    return {};
  }
}

bool build_shape(const mjvGeom& geom, const CasterModel& shared, const MovingParts& parts,
                 const Camera& camera, Shape& shape) {
  shape = Shape{};
  const std::optional<ShapeKind> kind = shape_kind(geom.type);
  if (!kind || !all_finite(geom.pos, 3) || !all_finite(geom.mat, 9) || !all_finite(geom.size, 3)
      || !all_finite(geom.rgba, 4) || !(geom.rgba[3] > 0))
    return false;
  shape.kind = *kind;
  shape.object_type = geom.objtype;
  shape.object_id = geom.objid;
  shape.casts_shadow = geom.category != mjCAT_DECOR;
  shape.size = float3(geom.size);
  for (std::size_t i = 0; i < 3; ++i)
    shape.inverse_size[i] = shape.size[i] > 0 ? 1 / shape.size[i] : 0;
  std::copy_n(geom.mat, 9, shape.rotation.begin());
  shape.position = float3(geom.pos);
  set_material(shared, geom, shape);
  if (shape.kind == ShapeKind::plane)
    set_plane(camera, shape);
  else if (has_formula(shape.kind) ? !(shape.size[0] > 0)
                                   : !set_surface(geom, shared, parts, shape))
    return false;
  set_bounds(shape);
  shape.transparent = shape.rgba[3] < kOpaque;
  shape.distance = transparent_distance(geom, camera.eye);
  constexpr float kThinPixels = .6F; // shapes with a smaller half width may fall between two pixels
  const float depth = camera.orthographic ? 1 : dot(shape.centre - camera.eye, camera.forward);
  const Float3& half = shape.half_size;
  const float thinnest = shape.kind == ShapeKind::capsule || shape.kind == ShapeKind::sphere
                             ? half[0]
                             : std::min({half[0], half[1], half[2]});
  shape.thin = shape.kind != ShapeKind::plane && thinnest < kThinPixels * camera.du * depth;
  return true;
}
MovingParts::MovingParts(const CasterModel& shared) {
  for (int i = 0; i < shared.model().nhfield; ++i)
    fields.emplace_back(shared.model(), i);
  for (const auto& skin : shared.skins())
    skins.emplace_back(skin);
  flexes.resize(static_cast<std::size_t>(shared.model().nflex));
}

void MovingParts::update(const mjModel& model, const mjData& data, const mjvScene& scene) {
  for (HeightField& field : fields)
    field.update(model);
  for (Skin& skin : skins)
    skin.pose(data);
  for (std::size_t i = 0; i < flexes.size(); ++i)
    flexes[i].update(scene, static_cast<int>(i));
}

} // namespace troupe::env::caster
