#include "env/caster/frame_builder.hpp"

#include <algorithm>
#include <cmath>

#include "env/caster/caster_model.hpp"
#include "env/caster/float3.hpp"
#include "env/caster/picture.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env::caster {

namespace {

constexpr float kNoLightAmbient = .3F;

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

void build_lights(const mjModel& model, const mjvScene& scene, Frame& frame) {
  frame.lights.clear();
  for (int i = 0; i < std::min(scene.nlight, kMaxLights); ++i) {
    const mjvLight& from = scene.lights[i];
    if (from.type != mjLIGHT_DIRECTIONAL && from.type != mjLIGHT_SPOT)
      continue; // OpenGL's pictures have no point and image lights either
    if (!all_finite(from.pos, 3) || !all_finite(from.dir, 3))
      continue;
    Light light;
    light.directional = from.type == mjLIGHT_DIRECTIONAL;
    light.spot = !light.directional && from.cutoff < 90.01F;
    light.shadowed = frame.effects && from.castshadow && !from.headlight;
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
  frame.shadow_scale = std::min(1.0F, .5F * static_cast<float>(model.stat.extent));
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

/// Sets up the sky, and the haze over the first plane that is infinite in both directions.
void build_far_end(const mjModel& model, const CasterModel& shared, Frame& frame) {
  const Camera& camera = frame.camera;
  frame.sky = shared.sky();
  const float across = std::max(std::abs(camera.u0),
                                std::abs(camera.u0 + camera.du * static_cast<float>(frame.width)));
  const float up = std::max(std::abs(camera.v0),
                            std::abs(camera.v0 - camera.dv * static_cast<float>(frame.height)));
  const float longest = camera.orthographic ? 1 : std::sqrt(1 + across * across + up * up);
  constexpr float kSkyPart = .699F; // fraction of the far plane; see infinite_plane-inl.hpp
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

void build_fog(const mjModel& model, Frame& frame) {
  Fog& fog = frame.fog;
  const auto extent = static_cast<float>(model.stat.extent);
  fog.end = model.vis.map.fogend * extent;
  const float range = fog.end - model.vis.map.fogstart * extent;
  fog.inverse_range = range != 0 ? 1 / range : 0;
  fog.colour = float3(model.vis.rgba.fog);
}

void build_shapes(const mjModel& model, const mjvScene& scene, const CasterModel& shared,
                  const MovingParts& parts, Frame& frame) {
  build_camera(scene, frame);
  build_lights(model, scene, frame);
  frame.shapes.clear();
  for (const bool transparent : {false, true}) {
    for (int i = 0; i < scene.ngeom; ++i) {
      const mjvGeom& geom = scene.geoms[i];
      if (geom.type != mjGEOM_PLANE && (geom.rgba[3] < kOpaque) != transparent)
        continue;
      const auto add = [&](const mjvGeom& one) {
        Shape shape;
        if (!build_shape(one, shared, parts, frame.camera, shape)
            || shape.transparent != transparent)
          return;
        shape.order = i;
        frame.shapes.push_back(shape);
      };
      if (geom.type == mjGEOM_FLEX)
        for_each_flex_part(scene, geom, add);
      else
        add(geom);
    }
    if (!transparent)
      frame.opaque = static_cast<int>(frame.shapes.size());
  }
  std::sort(frame.shapes.begin() + frame.opaque, frame.shapes.end(),
            [](const Shape& a, const Shape& b) {
              return std::pair(a.distance, a.order) < std::pair(b.distance, b.order);
            });
  find_floor(frame);
  find_mirror(frame);
  build_rays(frame);
  build_far_end(model, shared, frame);
  build_fog(model, frame);
}

} // namespace

FrameBuilder::FrameBuilder(const CasterModel& model, const CastOptions& options)
    : shared(model), list(model.model(), options.camera), parts(model) {
  frame.width = options.width;
  frame.height = options.height;
  frame.block_columns = (options.width + kBlockSide - 1) / kBlockSide;
  frame.block_rows = (options.height + kBlockSide - 1) / kBlockSide;
  frame.effects = options.effects;
  frame.fog.thick = options.fog;
}

void FrameBuilder::update(const mjModel& model, const mjData& data) {
  const mjvScene& scene = list.update(model, data);
  parts.update(model, data, scene);
  build_shapes(model, scene, shared, parts, frame);
  build_spans(frame);
  build_casters(frame);
}

} // namespace troupe::env::caster
