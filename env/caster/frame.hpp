#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "env/caster/height_field.hpp"
#include "env/caster/mesh.hpp"
#include "env/caster/textures.hpp"

namespace troupe::env::caster {

enum class ShapeKind : std::int32_t {
  plane,
  sphere,
  capsule,
  ellipsoid,
  cylinder,
  box,
  mesh,
  height_field,
  skin
};

/// A camera's rays in some frame. Perspective: from `origin` along forward + u*right + v*up, so
/// that the ray's parameter t is the distance from the camera's plane. Orthographic: from origin +
/// u*right
/// + v*up along forward.
struct RayFrame {
  std::array<float, 3> origin{};
  std::array<float, 3> right{};
  std::array<float, 3> up{};
  std::array<float, 3> forward{};
};

/// A light in a shape's frame.
struct LocalLight {
  std::array<float, 3> toward{}; // directional: unit vector to the light; else its position
  std::array<float, 3> axis{};   // the way it shines, unit
  // The light's colours times the shape's.
  std::array<float, 3> ambient{};
  std::array<float, 3> diffuse{};
  std::array<float, 3> specular{};
  bool has_ambient = false;
  bool shines = false; // any specular at all
};

inline constexpr int kMaxLights = 8; // as OpenGL's fixed function has

/// One light of the frame, head light included.
struct Light {
  bool directional = false;
  bool spot = false;     // has a cone
  bool shadowed = false; // its own pass, with shadows
  bool unattenuated = true;
  float cos_cutoff = -1;
  float exponent = 0;
  int whole_exponent = -1; // the exponent where it is a whole number
  std::array<float, 3> attenuation{1, 0, 0};
  std::array<float, 3> ambient{};
  std::array<float, 3> diffuse{};
  std::array<float, 3> specular{};
  std::array<float, 3> position{}; // world
  std::array<float, 3> direction{};
};

/// Vertices of a plane's mesh along one axis: -size, -size + pad, then every `step`, finally size.
struct PlaneAxis {
  float size = 0;
  float pad = 0;
  float step = 1;
  int cells = 1; // between -size + pad and size - pad
  float inverse_pad = 0;
  float inverse_step = 1;

  float line(int i) const { // 0 … cells + 2
    return i <= 0 ? -size : i >= cells + 2 ? size : -size + pad + static_cast<float>(i - 1) * step;
  }
};

/// A window of a plane's vertices around the cone of one spot light.
struct LightWindow {
  int light = -1;
  std::array<int, 2> first{};    // line numbers
  std::array<int, 2> count{};    // 0: the light does not reach the plane
  bool shines = false;           // enough to be seen
  std::array<float, 2> middle{}; // of the window, metres
  std::array<float, 2> half{};
};

/// Brightness of the spot light at the window's vertices.
struct LightTable : LightWindow {
  std::vector<float> ambient; // [count[1]][count[0]] attenuation x cone
  std::vector<float> diffuse; // that x N.L
  std::vector<float> specular;
};

/// The mapping of a plane's flat texture to the picture: u = u_scale x + u_offset, v likewise of y,
/// and how many texels they change by per pixel to the right and up, as the x or y and the z part
/// of that step.
struct PlaneTexture {
  float u_scale = 0;
  float u_offset = 0;
  float v_scale = 0;
  float v_offset = 0;
  std::array<float, 2> u_right{};
  std::array<float, 2> u_up{};
  std::array<float, 2> v_right{};
  std::array<float, 2> v_up{};
};

/// A drawn object: a geom, site, tendon segment or skin. Lengths in metres; its own frame is
/// the geom's (for ellipsoids the rays are in a frame scaled to the unit sphere).
struct alignas(64) Shape {
  ShapeKind kind = ShapeKind::sphere;
  std::int32_t object_type = -1; // mjtObj
  std::int32_t object_id = -1;
  const TextureView* texture = nullptr; // null: none
  TextureMapping mapping;
  MeshView mesh;                          // meshes and skins
  const HeightFieldView* field = nullptr; // height fields
  bool transparent = false;
  bool casts_shadow = false;
  bool endless = false; // a plane that is infinite both ways
  bool thin = false;    // about a pixel or less: may pass between the pixels' centres
  int squarings = -1;   // log2 of the half exponent, when that is a power of two
  float faintest = 0;   // (N.H)^2 below which nothing shines
  int first_table = -1; // of Frame::tables, one per light, for planes
  RayFrame ray;
  RayFrame mirrored;
  std::array<float, 3> size{};
  std::array<float, 3> inverse_size{};
  std::array<float, 9> rotation{}; // world from local, row major
  std::array<float, 3> position{};
  std::array<float, 4> rgba{};
  float emission = 0;
  float specular = 0;
  float half_exponent = 0; // of (N.H)^2
  float reflectance = 0;
  float distance = 0; // from the camera to its bounding sphere, orders what is transparent
  int order = 0;      // in MuJoCo's list, where distances are equal
  // Bounds: everything is in the box of half_size around `centre`, which is turned as the shape is,
  // and within `radius` of the segment centre ± half_segment.
  std::array<float, 3> centre{};
  std::array<float, 3> half_size{};
  std::array<float, 3> half_segment{};
  float radius = 0;
  std::array<PlaneAxis, 2> axes{}; // planes
  PlaneTexture plane_texture;
  bool plane_textured = false; // by plane_texture
  std::array<float, 3> glow{}; // emission and the scene's ambient light, times the colour
  std::array<LocalLight, kMaxLights> lights{}; // of the frame's; last, for StridedView
};

struct Camera {
  bool orthographic = false;
  std::array<float, 3> eye{};
  std::array<float, 3> right{};
  std::array<float, 3> up{};
  std::array<float, 3> forward{};
  float u0 = 0; // of the left edge of the picture
  float v0 = 0; // of its top edge
  float du = 0; // per pixel, to the right
  float dv = 0; // per pixel, downward (positive)
  float near = 0;
  float far = 0;
};

/// The plane (or box face) that mirrors, in the world: normal.x = offset.
struct Mirror {
  int shape = -1; // -1: none
  std::array<float, 3> normal{};
  float offset = 0;
  float reflectance = 0;
};

/// Linear in the distance from the camera's plane: none up to `start` metres, all from `end` on.
struct Fog {
  bool thick = false; // there is fog
  float end = 0;
  float inverse_range = 0; // 1 / (end - start)
  std::array<float, 3> colour{};
};

/// Which blocks of a row an item may touch, both ends included.
struct BlockRange {
  std::uint16_t first = 1;
  std::uint16_t last = 0;
};

/// An item of a SpanSet and the rows of blocks it may touch.
struct SpanItem {
  std::int32_t item = 0;
  std::int32_t first_row = 0;
  std::int32_t last_row = -1;
  std::size_t ranges = 0; // of first_row in SpanSet::ranges
};

struct SpanSet {
  std::vector<SpanItem> items;
  std::vector<BlockRange> ranges;

  void clear() {
    items.clear();
    ranges.clear();
  }
};

/// Shape `caster` may put its shadow from `light` on plane `receiver`.
struct ShadowPair {
  std::int32_t receiver = 0;
  std::int32_t light = 0;
  std::int32_t caster = 0;
};

/// One picture's scalars.
struct FrameNumbers {
  Camera camera;
  int width = 0;
  int height = 0;
  int block_columns = 0;
  int block_rows = 0;
  bool effects = true;
  int opaque = 0;
  int floor = -2;                   // the first plane of the opaque shapes; -2: none
  const TextureView* sky = nullptr; // null: none, all is black
  float sky_nearest = 0;            // t before which no ray of the picture meets the sky
  const Shape* hazy = nullptr;      // the plane under the haze; null: none
  std::array<float, 3> haze_colour{};
  float map_haze = 0;
  std::array<float, 3> scene_ambient{};
  Mirror mirror;
  Fog fog;
};

/// One picture's data, as the kernels read it.
struct Frame : FrameNumbers {
  std::vector<Shape> shapes; // opaque ones first, then transparent ones, nearest first
  std::vector<Light> lights;
  SpanSet visible;
  SpanSet mirrored;
  SpanSet shadowed;              // items are numbers of `pairs`
  std::vector<ShadowPair> pairs; // by receiver, then light
  // Casters for receivers that are no planes: of shape s and light l, caster_list from
  // caster_first[s * lights + l] to the next.
  std::vector<std::int32_t> caster_first;
  std::vector<std::int32_t> caster_list;
  std::vector<LightTable> tables;
};

} // namespace troupe::env::caster
