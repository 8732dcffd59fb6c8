#include "env/caster/frame_builder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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
  camera.du = camera.dv;
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
  default:
    return false;
  }
}

/// A sphere's worth of segment and radius around the shape.
void set_bounds(Shape& shape) {
  const Float3& size = shape.size;
  std::size_t longest = 2;
  float half = 0;
  switch (shape.kind) {
  case ShapeKind::sphere:
    shape.radius = size[0];
    break;
  case ShapeKind::capsule:
  case ShapeKind::cylinder: // within the capsule around it
    shape.radius = size[0];
    half = size[2];
    break;
  case ShapeKind::ellipsoid: {
    longest = static_cast<std::size_t>(std::max_element(size.begin(), size.end()) - size.begin());
    shape.radius = std::max(size[(longest + 1) % 3], size[(longest + 2) % 3]);
    half = size[longest] - shape.radius;
    break;
  }
  case ShapeKind::plane:
    shape.radius = 1e9F;
    break;
  default: {
    longest = static_cast<std::size_t>(std::max_element(size.begin(), size.end()) - size.begin());
    shape.radius = std::hypot(size[(longest + 1) % 3], size[(longest + 2) % 3]);
    half = size[longest];
  }
  }
  shape.half_segment = column(shape.rotation, longest) * half;
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
  return axis;
}

void set_material(const mjModel& model, const mjvGeom& geom, Shape& shape) {
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
  shape.texture = -1;
  if (geom.matid >= 0 && geom.matid < model.nmat) {
    const int texture = model.mat_texid[geom.matid * mjNTEXROLE + mjTEXROLE_RGB];
    shape.texture = texture >= 0 ? texture : model.mat_texid[geom.matid * mjNTEXROLE];
  }
  shape.texture_uniform = geom.texuniform != 0;
  shape.texture_coordinates = geom.texcoord != 0;
  shape.texture_repeat = {geom.texrepeat[0], geom.texrepeat[1]};
}

/// The geom as a shape; false when it is not one or not finite.
bool set_shape(const mjModel& model, const mjvGeom& geom, const Camera& camera, Shape& shape) {
  shape = Shape{};
  if (!set_kind(geom, shape) || !finite(geom.pos, 3) || !finite(geom.mat, 9)
      || !finite(geom.size, 3) || !finite(geom.rgba, 4) || !(geom.rgba[3] > 0))
    return false;
  shape.object_type = geom.objtype;
  shape.object_id = geom.objid;
  shape.data = geom.dataid;
  shape.casts_shadow = geom.category != mjCAT_DECOR;
  shape.size = float3(geom.size);
  for (std::size_t i = 0; i < 3; ++i)
    shape.inverse_size[i] = shape.size[i] > 0 ? 1 / shape.size[i] : 0;
  std::copy_n(geom.mat, 9, shape.rotation.begin());
  shape.position = float3(geom.pos);
  set_material(model, geom, shape);
  set_bounds(shape);
  if (shape.kind == ShapeKind::plane) {
    shape.infinite_x = shape.size[0] <= 0;
    shape.infinite_y = shape.size[1] <= 0;
    shape.axes = {plane_axis(shape.size[0], shape.size[2]),
                  plane_axis(shape.size[1], shape.size[2])};
    const float above = dot(camera.eye - shape.position, column(shape.rotation, 2));
    if (above < 0)
      shape.rgba[3] *= kFromBehind;
  } else if (!(shape.size[0] > 0)) {
    return false;
  }
  shape.transparent = shape.rgba[3] < kOpaque;
  shape.distance = dot(shape.position - camera.eye, shape.position - camera.eye);
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
      local.shines = local.specular[0] + local.specular[1] + local.specular[2] > 0;
    }
  }
}

} // namespace

void build_shapes(const mjModel& model, const mjvScene& scene, const CasterModel& shared,
                  Frame& frame) {
  (void)shared;
  build_camera(scene, frame);
  build_lights(scene, frame);
  frame.shapes.clear();
  Shape shape;
  for (const bool transparent : {false, true}) {
    for (int i = 0; i < scene.ngeom; ++i)
      if ((scene.geoms[i].type == mjGEOM_PLANE || (scene.geoms[i].rgba[3] < kOpaque) == transparent)
          && set_shape(model, scene.geoms[i], frame.camera, shape)
          && shape.transparent == transparent)
        frame.shapes.push_back(shape);
    if (!transparent)
      frame.opaque = static_cast<int>(frame.shapes.size());
  }
  std::sort(frame.shapes.begin() + frame.opaque, frame.shapes.end(),
            [](const Shape& a, const Shape& b) { return a.distance < b.distance; });
  find_mirror(frame);
  build_rays(frame);
}

} // namespace troupe::env::caster
