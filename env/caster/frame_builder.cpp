#include "env/caster/frame_builder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "env/caster/caster_model.hpp"
#include "env/caster/float3.hpp"

namespace troupe::env::caster {

namespace {

constexpr float kOpaque = .995F;     // rgba[3] from which on MuJoCo blends nothing
constexpr float kFromBehind = .3F;   // of the alpha of a plane seen from behind
constexpr float kMostExponent = 128; // OpenGL's
constexpr float kNoLightAmbient = .3F;

bool finite(const float* values, int count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

void build_camera(const mjvScene& scene, Frame& frame) {
  const mjvGLCamera middle = mjv_averageCamera(&scene.camera[0], &scene.camera[1]);
  Camera& camera = frame.camera;
  camera.orthographic = middle.orthographic != 0;
  camera.eye = float3(middle.pos);
  camera.forward = float3(middle.forward);
  camera.up = float3(middle.up);
  camera.right = cross(camera.forward, camera.up);
  camera.near = middle.frustum_near;
  camera.far = middle.frustum_far;
  const float scale = camera.orthographic ? 1 : 1 / middle.frustum_near;
  const float height = (middle.frustum_top - middle.frustum_bottom) * scale;
  camera.dv = height / static_cast<float>(frame.height);
  // Pixels are square unless the camera has intrinsics.
  camera.du = middle.frustum_width > 0
                  ? 2 * middle.frustum_width * scale / static_cast<float>(frame.width)
                  : camera.dv;
  camera.v0 = middle.frustum_top * scale;
  camera.u0 = middle.frustum_center * scale - .5F * camera.du * static_cast<float>(frame.width);
}

void build_lights(const mjvScene& scene, Frame& frame) {
  frame.lights.clear();
  for (int i = 0; i < std::min(scene.nlight, kMaxLights); ++i) {
    const mjvLight& from = scene.lights[i];
    if (from.type == mjLIGHT_IMAGE || !finite(from.pos, 3) || !finite(from.dir, 3))
      continue;
    Light light;
    light.directional = from.type == mjLIGHT_DIRECTIONAL;
    light.spot = from.type == mjLIGHT_SPOT && from.cutoff < 90.01F;
    light.shadowed =
        frame.effects && from.castshadow && !from.headlight && from.type != mjLIGHT_POINT;
    light.cos_cutoff = light.spot ? std::cos(from.cutoff * static_cast<float>(mjPI) / 180) : -2;
    light.exponent = light.spot ? std::clamp(from.exponent, 0.0F, kMostExponent) : 0;
    if (light.exponent == std::floor(light.exponent))
      light.whole_exponent = static_cast<int>(light.exponent);
    light.attenuation = float3(from.attenuation);
    light.unattenuated =
        light.directional
        || (from.attenuation[0] == 1 && from.attenuation[1] == 0 && from.attenuation[2] == 0);
    light.ambient = float3(from.ambient);
    light.diffuse = float3(from.diffuse);
    light.specular = float3(from.specular);
    light.position = float3(from.pos);
    const Float3 direction = float3(from.dir);
    const float norm = length(direction);
    light.direction = norm > 1e-12F ? direction * (1 / norm) : Float3{0, 0, -1};
    frame.lights.push_back(light);
  }
  const float ambient = frame.lights.empty() ? kNoLightAmbient : 0;
  frame.scene_ambient = {ambient, ambient, ambient};
}

bool set_kind(const mjvGeom& geom, Shape& shape) {
  switch (geom.type) {
  case mjGEOM_PLANE:
    shape.kind = ShapeKind::plane;
    return true;
  case mjGEOM_SPHERE:
    shape.kind = ShapeKind::sphere;
    return true;
  case mjGEOM_CAPSULE:
    shape.kind = ShapeKind::capsule;
    return true;
  case mjGEOM_ELLIPSOID:
    shape.kind = ShapeKind::ellipsoid;
    return true;
  case mjGEOM_CYLINDER:
    shape.kind = ShapeKind::cylinder;
    return true;
  case mjGEOM_BOX:
    shape.kind = ShapeKind::box;
    return true;
  case mjGEOM_MESH:
  case mjGEOM_SDF:
    shape.kind = ShapeKind::mesh;
    return true;
  case mjGEOM_HFIELD:
    shape.kind = ShapeKind::height_field;
    return true;
  case mjGEOM_SKIN:
    shape.kind = ShapeKind::skin;
    return true;
  default:
    return false;
  }
}

bool has_formula(ShapeKind kind) {
  return kind <= ShapeKind::box;
}

/// Box and capsule around the shape; half_size and centre are known for what is no formula.
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
    shape.radius = size[0]; // a cylinder is within the capsule around it
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

/// The box from low to high, in the shape's frame; false when it is none.
bool set_box(Shape& shape, const Float3& low, const Float3& high) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(low[i] <= high[i]) || !std::isfinite(high[i] - low[i]))
      return false;
    shape.half_size[i] = std::max(.5F * (high[i] - low[i]), 1e-6F);
  }
  shape.centre = shape.position + outward(shape.rotation, (low + high) * .5F);
  return true;
}

/// Triangles of meshes, skins and height fields; false when there are none.
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
    shape.mesh = shared.meshes().view(geom.dataid < 0 ? -1 : geom.dataid / 2); // odd: the hull
  } else {
    if (geom.objid < 0 || geom.objid >= static_cast<int>(parts.skins.size()))
      return false;
    const Skin& skin = parts.skins[static_cast<std::size_t>(geom.objid)];
    shape.mesh = skin.view();
    shape.position = skin.origin();
    shape.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  }
  return shape.mesh.nodes != nullptr && finite(shape.position.data(), 3)
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
  // Below, the power is less than 1e-6; no number gets so small that processors slow down.
  shape.faintest = shape.half_exponent > 0 ? std::pow(1e-6F, 1 / shape.half_exponent) : 0;
  shape.mapping = map_texture(geom, shared.textures());
  if (shape.mapping.layout != TextureLayout::none)
    shape.texture = &shared.textures()[static_cast<std::size_t>(shape.mapping.texture)];
}

/// Infinite planes end where MuJoCo lets them end: a few steps of their texture beyond the far
/// plane. mjv_updateScene has moved them along with the camera.
void set_plane(const Camera& camera, Shape& shape) {
  constexpr float kLines = 198; // without a texture
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

/// The geom as a shape; false when it is not one or not finite.
bool set_shape(const mjvGeom& geom, const CasterModel& shared, const MovingParts& parts,
               const Camera& camera, Shape& shape) {
  shape = Shape{};
  if (!set_kind(geom, shape) || !finite(geom.pos, 3) || !finite(geom.mat, 9)
      || !finite(geom.size, 3) || !finite(geom.rgba, 4) || !(geom.rgba[3] > 0))
    return false;
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
  shape.distance = dot(shape.position - camera.eye, shape.position - camera.eye);
  constexpr float kThinPixels = .6F; // half of what may pass between the centres of pixels
  const float depth = camera.orthographic ? 1 : dot(shape.centre - camera.eye, camera.forward);
  const Float3& half = shape.half_size;
  const float thinnest = shape.kind == ShapeKind::capsule || shape.kind == ShapeKind::sphere
                             ? half[0]
                             : std::min({half[0], half[1], half[2]});
  shape.thin = shape.kind != ShapeKind::plane && thinnest < kThinPixels * camera.du * depth;
  return true;
}

RayFrame local_rays(const Shape& shape, const Float3& eye, const Float3& right, const Float3& up,
                    const Float3& forward) {
  RayFrame rays;
  rays.origin = inward(shape.rotation, eye - shape.position);
  rays.right = inward(shape.rotation, right);
  rays.up = inward(shape.rotation, up);
  rays.forward = inward(shape.rotation, forward);
  if (shape.kind == ShapeKind::ellipsoid)
    for (Float3* vector : {&rays.origin, &rays.right, &rays.up, &rays.forward})
      *vector = times(*vector, shape.inverse_size);
  return rays;
}

void find_floor(Frame& frame) {
  frame.floor = -2;
  for (int i = frame.opaque - 1; i >= 0; --i)
    if (frame.shapes[static_cast<std::size_t>(i)].kind == ShapeKind::plane)
      frame.floor = i;
}

void find_mirror(Frame& frame) {
  frame.mirror = {};
  if (!frame.effects)
    return;
  for (int i = 0; i < frame.opaque; ++i) {
    const Shape& shape = frame.shapes[static_cast<std::size_t>(i)];
    if (shape.reflectance <= 0 || (shape.kind != ShapeKind::plane && shape.kind != ShapeKind::box))
      continue;
    Mirror mirror;
    mirror.shape = i;
    mirror.normal = column(shape.rotation, 2);
    const Float3 point = shape.kind == ShapeKind::box
                             ? shape.position + mirror.normal * shape.size[2]
                             : shape.position;
    mirror.offset = dot(mirror.normal, point);
    mirror.reflectance = shape.reflectance;
    if (dot(mirror.normal, frame.camera.eye) > mirror.offset)
      frame.mirror = mirror;
    return;
  }
}

void set_plane_texture(const Camera& camera, Shape& shape) {
  const TextureMapping& mapping = shape.mapping;
  shape.plane_textured = shape.kind == ShapeKind::plane && shape.texture != nullptr
                         && shape.texture->two_colours && mapping.layout == TextureLayout::box;
  if (!shape.plane_textured)
    return;
  PlaneTexture& to = shape.plane_texture;
  to.u_scale = .5F * mapping.inverse_size[0] * mapping.scale[0];
  to.u_offset = .5F * mapping.scale[0];
  to.v_scale = -.5F * mapping.inverse_size[1] * mapping.scale[1];
  to.v_offset = .5F * mapping.scale[1];
  const float u = to.u_scale * shape.texture->width_texels[0];
  const float v = to.v_scale * shape.texture->height_texels[0];
  const Float3 right = shape.ray.right * camera.du;
  const Float3 up = shape.ray.up * camera.dv;
  to.u_right = {right[0] * u, right[2] * u};
  to.u_up = {up[0] * u, up[2] * u};
  to.v_right = {right[1] * v, right[2] * v};
  to.v_up = {up[1] * v, up[2] * v};
}

void build_rays(Frame& frame) {
  const Camera& camera = frame.camera;
  const Mirror& mirror = frame.mirror;
  const auto reflect = [&](const Float3& a, float offset) {
    return a - mirror.normal * (2 * (dot(mirror.normal, a) - offset));
  };
  for (Shape& shape : frame.shapes) {
    shape.ray = local_rays(shape, camera.eye, camera.right, camera.up, camera.forward);
    if (mirror.shape >= 0)
      shape.mirrored =
          local_rays(shape, reflect(camera.eye, mirror.offset), reflect(camera.right, 0),
                     reflect(camera.up, 0), reflect(camera.forward, 0));
    set_plane_texture(camera, shape);
    for (std::size_t i = 0; i < 3; ++i)
      shape.glow[i] = (shape.emission + frame.scene_ambient[i]) * shape.rgba[i];
    for (std::size_t l = 0; l < frame.lights.size(); ++l) {
      const Light& light = frame.lights[l];
      shape.lights[l].toward = light.directional
                                   ? inward(shape.rotation, light.direction * -1)
                                   : inward(shape.rotation, light.position - shape.position);
      LocalLight& local = shape.lights[l];
      local.axis = inward(shape.rotation, light.direction);
      for (std::size_t i = 0; i < 3; ++i) {
        local.ambient[i] = light.ambient[i] * shape.rgba[i];
        local.diffuse[i] = light.diffuse[i] * shape.rgba[i];
        local.specular[i] = light.specular[i] * shape.specular;
      }
      local.has_ambient = local.ambient[0] + local.ambient[1] + local.ambient[2] > 0;
      local.shines = local.specular[0] + local.specular[1] + local.specular[2] > 0;
    }
  }
}

/// The sky, and the haze over the first plane that is infinite both ways.
void build_far_end(const mjModel& model, const CasterModel& shared, Frame& frame) {
  const Camera& camera = frame.camera;
  frame.sky = shared.sky();
  const float across = std::max(std::abs(camera.u0),
                                std::abs(camera.u0 + camera.du * static_cast<float>(frame.width)));
  const float up = std::max(std::abs(camera.v0),
                            std::abs(camera.v0 - camera.dv * static_cast<float>(frame.height)));
  const float longest = camera.orthographic ? 1 : std::sqrt(1 + across * across + up * up);
  constexpr float kSkyPart = .699F; // of the far plane; infinite_plane-inl.hpp has the number
  frame.sky_nearest = frame.sky != nullptr ? kSkyPart * camera.far / longest : 3e38F;
  frame.hazy = nullptr;
  frame.map_haze = model.vis.map.haze;
  frame.haze_colour = float3(model.vis.rgba.haze);
  for (int i = 0; i < frame.opaque && frame.sky != nullptr && frame.hazy == nullptr; ++i) {
    const Shape& plane = frame.shapes[static_cast<std::size_t>(i)];
    if (plane.endless)
      frame.hazy = &plane;
  }
}

} // namespace

MovingParts::MovingParts(const CasterModel& shared) {
  for (int i = 0; i < shared.model().nhfield; ++i)
    fields.emplace_back(shared.model(), i);
  for (const auto& skin : shared.skins())
    skins.emplace_back(skin);
}

void MovingParts::update(const mjModel& model, const mjData& data) {
  for (HeightField& field : fields)
    field.update(model);
  for (Skin& skin : skins)
    skin.pose(data);
}

void build_shapes(const mjModel& model, const mjvScene& scene, const CasterModel& shared,
                  const MovingParts& parts, Frame& frame) {
  build_camera(scene, frame);
  build_lights(scene, frame);
  frame.shapes.clear();
  Shape shape;
  for (const bool transparent : {false, true}) {
    for (int i = 0; i < scene.ngeom; ++i)
      if ((scene.geoms[i].type == mjGEOM_PLANE || (scene.geoms[i].rgba[3] < kOpaque) == transparent)
          && set_shape(scene.geoms[i], shared, parts, frame.camera, shape)
          && shape.transparent == transparent)
        frame.shapes.push_back(shape);
    if (!transparent)
      frame.opaque = static_cast<int>(frame.shapes.size());
  }
  std::sort(frame.shapes.begin() + frame.opaque, frame.shapes.end(),
            [](const Shape& a, const Shape& b) { return a.distance < b.distance; });
  find_floor(frame);
  find_mirror(frame);
  build_rays(frame);
  build_far_end(model, shared, frame);
}

} // namespace troupe::env::caster
