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

/// The camera's rays in some frame. A perspective ray starts at `origin` and has the direction
/// forward + u*right + v*up, so that its parameter t is the distance from the camera's plane. An
/// orthographic ray starts at origin + u*right + v*up and has the direction forward.
struct RayFrame {
  std::array<float, 3> origin{};
  std::array<float, 3> right{};
  std::array<float, 3> up{};
  std::array<float, 3> forward{};
};

/// A light in a shape's frame.
struct LocalLight {
  std::array<float, 3> toward{}; // directional: unit vector to the light; else its position
  std::array<float, 3> axis{};   // the direction in which it shines, unit vector
  // The light's colours times the shape's colour.
  std::array<float, 3> ambient{};
  std::array<float, 3> diffuse{};
  std::array<float, 3> specular{};
  bool has_ambient = false;
  bool shines = false; // has a specular part
};

inline constexpr int kMaxLights = 8; // the limit of OpenGL's fixed-function pipeline

/// One light of the frame, possibly the headlight.
struct Light {
  bool directional = false;
  bool spot = false;     // has a cone
  bool shadowed = false; // casts shadows, so it gets a pass of its own
  bool unattenuated = true;
  float cos_cutoff = -1;
  float exponent = 0;
  int whole_exponent = -1; // the exponent if it is an integer; else -1
  std::array<float, 3> attenuation{1, 0, 0};
  std::array<float, 3> ambient{};
  std::array<float, 3> diffuse{};
  std::array<float, 3> specular{};
  std::array<float, 3> position{}; // in the world frame
  std::array<float, 3> direction{};
};

/// The vertices of a plane's mesh along one axis: -size, -size + pad, then one every `step`, and
/// size.
struct PlaneAxis {
  float size = 0;
  float pad = 0;
  float step = 1;
  int cells = 1; // between -size + pad and size - pad
  float inverse_pad = 0;
  float inverse_step = 1;

  float line(int i) const { // the position of vertex i, 0 to cells + 2
    return i <= 0 ? -size : i >= cells + 2 ? size : -size + pad + static_cast<float>(i - 1) * step;
  }
};

/// The part of a plane's vertices that the cone of one spot light covers.
struct LightWindow {
  int light = -1;
  std::array<int, 2> first{};    // line numbers, as in PlaneAxis::line()
  std::array<int, 2> count{};    // 0 if the light does not reach the plane
  bool shines = false;           // has a visible specular part
  std::array<float, 2> middle{}; // of the window, metres
  std::array<float, 2> half{};
};

/// The brightness of the spot light at the window's vertices.
struct LightTable : LightWindow {
  std::vector<float> ambient; // [count[1]][count[0]] attenuation x cone
  std::vector<float> diffuse; // attenuation x cone x N.L
  std::vector<float> specular;
};

/// How a plane's flat texture maps to the picture: u = u_scale x + u_offset, and v likewise from y.
/// The pairs are the change in texels per pixel to the right and per pixel up: the part from x (or
/// y) and the part from z.
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

/// A drawn object: a geom, site, tendon segment, skin or flex. Lengths are in metres. The shape's
/// own frame is that of the geom; the rays of an ellipsoid are in a frame scaled to the unit
/// sphere.
struct alignas(64) Shape {
  ShapeKind kind = ShapeKind::sphere;
  std::int32_t object_type = -1; // an mjtObj
  std::int32_t object_id = -1;
  const TextureView* texture = nullptr; // null if there is none
  TextureMapping mapping;
  MeshView mesh;                          // meshes and skins
  const HeightFieldView* field = nullptr; // height fields
  bool transparent = false;
  bool casts_shadow = false;
  bool endless = false; // a plane that is infinite in both directions
  bool thin = false;    // about a pixel wide or less, so that it may fall between pixel centres
  int squarings = -1;   // log2 of half_exponent if that is a power of two; else -1
  float faintest = 0;   // the highlight is invisible where (N.H)^2 is below this
  int first_table = -1; // planes: index in Frame::tables of the first of its tables, one per light
  RayFrame ray;
  RayFrame mirrored;
  std::array<float, 3> size{};
  std::array<float, 3> inverse_size{};
  std::array<float, 9> rotation{}; // from the local to the world frame, row-major
  std::array<float, 3> position{};
  std::array<float, 4> rgba{};
  float emission = 0;
  float specular = 0;
  float half_exponent = 0; // the exponent of (N.H)^2
  float reflectance = 0;
  float distance = 0; // from the camera to its bounding sphere; transparent shapes are sorted by it
  int order = 0;      // index in MuJoCo's list, for shapes at equal distances
  // Bounds. The whole shape is in the box of half_size around `centre`, which has the shape's
  // rotation, and within `radius` of the segment from centre - half_segment to centre +
  // half_segment.
  std::array<float, 3> centre{};
  std::array<float, 3> half_size{};
  std::array<float, 3> half_segment{};
  float radius = 0;
  std::array<PlaneAxis, 2> axes{}; // planes
  PlaneTexture plane_texture;
  bool plane_textured = false; // plane_texture is valid
  std::array<float, 3> glow{}; // (emission + the scene's ambient light) times the colour
  std::array<LocalLight, kMaxLights> lights{}; // of Frame::lights; must come last, for StridedView
};

struct Camera {
  bool orthographic = false;
  std::array<float, 3> eye{};
  std::array<float, 3> right{};
  std::array<float, 3> up{};
  std::array<float, 3> forward{};
  float u0 = 0; // u at the left edge of the picture
  float v0 = 0; // v at the top edge of the picture
  float du = 0; // change of u per pixel to the right
  float dv = 0; // change of v per pixel downwards (positive)
  float near = 0;
  float far = 0;
};

/// The mirroring plane or box face in the world frame: its points p have normal.p = offset.
struct Mirror {
  int shape = -1; // -1 if there is none
  std::array<float, 3> normal{};
  float offset = 0;
  float reflectance = 0;
};

/// Fog is linear in the distance from the camera's plane: none up to `start` metres, full from
/// `end` on.
struct Fog {
  bool thick = false; // whether there is fog
  float end = 0;
  float inverse_range = 0; // 1 / (end - start)
  std::array<float, 3> colour{};
};

/// The blocks of a row that an item may cover, both ends included.
struct BlockRange {
  std::uint16_t first = 1;
  std::uint16_t last = 0;
};

/// An item of a SpanSet and the rows of blocks that it may cover.
struct SpanItem {
  std::int32_t item = 0;
  std::int32_t first_row = 0;
  std::int32_t last_row = -1;
  std::size_t ranges = 0; // index of first_row's range in SpanSet::ranges
};

struct SpanSet {
  std::vector<SpanItem> items;
  std::vector<BlockRange> ranges;

  void clear() {
    items.clear();
    ranges.clear();
  }
};

/// Shape `caster` may cast a shadow from `light` on plane `receiver`.
struct ShadowPair {
  std::int32_t receiver = 0;
  std::int32_t light = 0;
  std::int32_t caster = 0;
};

/// The scalars of one picture.
struct FrameNumbers {
  Camera camera;
  int width = 0;
  int height = 0;
  int block_columns = 0;
  int block_rows = 0;
  bool effects = true;
  int opaque = 0;
  int floor = -2;                   // the first opaque plane; -2 if there is none
  const TextureView* sky = nullptr; // null if there is none: the background is black
  float sky_nearest = 0;            // no ray of the picture meets the sky at a smaller t
  const Shape* hazy = nullptr;      // the plane under the haze; null if there is none
  std::array<float, 3> haze_colour{};
  float map_haze = 0;
  std::array<float, 3> scene_ambient{};
  float shadow_scale = 1; // of the tolerances of shadows; below 1 in scenes smaller than 2 m
  Mirror mirror;
  Fog fog;
};

/// The data of one picture, as the kernels read it.
struct Frame : FrameNumbers {
  std::vector<Shape> shapes; // opaque ones first, then transparent ones from near to far
  std::vector<Light> lights;
  SpanSet visible;
  SpanSet mirrored;
  SpanSet shadowed;              // its items are indices into `pairs`
  std::vector<ShadowPair> pairs; // ordered by receiver, then by light
  // The shapes that may cast shadows on receivers other than planes. For shape s and light l they
  // are the entries of caster_list from caster_first[i] up to caster_first[i + 1], where i is
  // s * lights + l.
  std::vector<std::int32_t> caster_first;
  std::vector<std::int32_t> caster_list;
  std::vector<LightTable> tables;
};

} // namespace troupe::env::caster
