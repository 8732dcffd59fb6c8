#include <algorithm>
#include <cmath>

#include "env/caster/bounds.hpp"
#include "env/caster/float3.hpp"
#include "env/caster/frame_builder.hpp"

namespace troupe::env::caster {

namespace {

constexpr std::array<std::pair<int, int>, 12> kBoxEdges = {{{0, 1},
                                                            {2, 3},
                                                            {4, 5},
                                                            {6, 7},
                                                            {0, 2},
                                                            {1, 3},
                                                            {4, 6},
                                                            {5, 7},
                                                            {0, 4},
                                                            {1, 5},
                                                            {2, 6},
                                                            {3, 7}}};

bool is_round(ShapeKind kind) {
  return kind == ShapeKind::sphere || kind == ShapeKind::capsule || kind == ShapeKind::ellipsoid
         || kind == ShapeKind::cylinder;
}

/// Adds a shape to `set`. `place` maps world points to the camera's frame, directly or through the
/// mirror.
template <class Place>
void add_shape(const SpanBuilder& spans, SpanSet& set, int item, const Shape& shape,
               Place&& place) {
  if (is_round(shape.kind)) {
    spans.add_capsule(set, item, place(shape.centre - shape.half_segment),
                      place(shape.centre + shape.half_segment), shape.radius);
    return;
  }
  const Float3 x = column(shape.rotation, 0) * shape.half_size[0];
  const Float3 y = column(shape.rotation, 1) * shape.half_size[1];
  if (shape.kind == ShapeKind::plane) {
    const Float3& p = shape.position;
    spans.add_polygon(set, item,
                      std::array<CameraPoint, 4>{place(p - x - y), place(p + x - y),
                                                 place(p + x + y), place(p - x + y)});
    return;
  }
  const Float3 z = column(shape.rotation, 2) * shape.half_size[2];
  std::array<CameraPoint, 8> corners;
  for (std::size_t i = 0; i < 8; ++i)
    corners[i] = place(shape.centre + x * ((i & 1) != 0 ? 1.0F : -1.0F)
                       + y * ((i & 2) != 0 ? 1.0F : -1.0F) + z * ((i & 4) != 0 ? 1.0F : -1.0F));
  spans.add_hull(set, item, corners, kBoxEdges);
}

/// The extent along one axis of a ball's shadow on the plane z = 0.
struct Extent {
  float low = 0;
  float high = 0;
  bool bounded = true;
};

Extent shadow_extent(const Light& light, const LocalLight& local, const Float3& centre,
                     float radius, std::size_t axis) {
  Extent extent;
  if (light.directional) {
    const float slope = local.toward[axis] / local.toward[2];
    const float middle = centre[axis] - centre[2] * slope;
    const float half = radius * std::sqrt(1 + slope * slope);
    extent.low = middle - half;
    extent.high = middle + half;
    return extent;
  }
  const float down = local.toward[2] - centre[2];
  const float across = centre[axis] - local.toward[axis];
  const float squared = down * down + across * across - radius * radius;
  if (down <= radius || squared <= 0) {
    extent.bounded = false;
    return extent;
  }
  const float slope = across / down;
  const float half = radius / std::sqrt(squared);
  const float plus = 1 - slope * half;
  const float minus = 1 + slope * half;
  if (plus < 1e-3F || minus < 1e-3F) {
    extent.bounded = false;
    return extent;
  }
  extent.low = local.toward[axis] + local.toward[2] * (slope - half) / minus;
  extent.high = local.toward[axis] + local.toward[2] * (slope + half) / plus;
  return extent;
}

/// The convex hull of two rectangles of the same size at `a` and `b` on the plane: its corners in
/// order, as x, y pairs.
std::array<std::array<float, 2>, 6> swept_rectangle(std::array<float, 2> a, std::array<float, 2> b,
                                                    float half_x, float half_y) {
  if (a[0] > b[0])
    std::swap(a, b);
  const float up = b[1] >= a[1] ? 1.0F : -1.0F;
  const float hy = up * half_y;
  return {{{a[0] - half_x, a[1] - hy},
           {a[0] + half_x, a[1] - hy},
           {b[0] + half_x, b[1] - hy},
           {b[0] + half_x, b[1] + hy},
           {b[0] - half_x, b[1] + hy},
           {a[0] - half_x, a[1] + hy}}};
}

/// Adds the part of one plane that another plane may shadow.
void add_plane_shadow(const SpanBuilder& spans, Frame& frame, const ShadowPair& pair) {
  const Shape& receiver = frame.shapes[static_cast<std::size_t>(pair.receiver)];
  const Shape& caster = frame.shapes[static_cast<std::size_t>(pair.caster)];
  const LocalLight& local = receiver.lights[static_cast<std::size_t>(pair.light)];
  const bool directional = frame.lights[static_cast<std::size_t>(pair.light)].directional;
  const int item = static_cast<int>(frame.pairs.size());
  std::array<CameraPoint, 4> corners;
  float highest = -1e30F;
  bool bounded = true;
  for (std::size_t i = 0; i < 4; ++i) {
    const float x = caster.size[0] * ((i == 0 || i == 3) ? -1.0F : 1.0F);
    const float y = caster.size[1] * (i < 2 ? -1.0F : 1.0F);
    const Float3 at =
        inward(receiver.rotation,
               caster.position + outward(caster.rotation, {x, y, 0}) - receiver.position);
    highest = std::max(highest, at[2]);
    const float down = directional ? local.toward[2] : local.toward[2] - at[2];
    bounded = bounded && down > 1e-3F;
    const float reach = at[2] / std::max(down, 1e-3F); // from the point on to its shadow
    Float3 shadow{};
    for (std::size_t k = 0; k < 2; ++k)
      shadow[k] =
          directional ? at[k] - reach * local.toward[k] : at[k] + reach * (at[k] - local.toward[k]);
    const Float3 world = receiver.position + outward(receiver.rotation, shadow);
    corners[i] = spans.to_camera(world.data());
  }
  if (highest <= 1e-5F)
    return; // the caster is below the receiver or in the same plane
  frame.pairs.push_back(pair);
  if (bounded)
    spans.add_polygon(frame.shadowed, item, corners);
  else
    spans.add_everywhere(frame.shadowed, item);
}

/// Adds the part of a plane that a caster may shadow.
void add_shadow(const SpanBuilder& spans, Frame& frame, int receiver_number, int caster_number,
                int light_number) {
  const Shape& receiver = frame.shapes[static_cast<std::size_t>(receiver_number)];
  const Shape& caster = frame.shapes[static_cast<std::size_t>(caster_number)];
  const Light& light = frame.lights[static_cast<std::size_t>(light_number)];
  const LocalLight& local = receiver.lights[static_cast<std::size_t>(light_number)];
  if (!(local.toward[2] > 0))
    return; // the light shines on the back
  const int item = static_cast<int>(frame.pairs.size());
  const ShadowPair pair{receiver_number, light_number, caster_number};
  if (caster.kind == ShapeKind::plane) {
    add_plane_shadow(spans, frame, pair);
    return;
  }
  const Float3 middle = inward(receiver.rotation, caster.centre - receiver.position);
  const Float3 half = inward(receiver.rotation, caster.half_segment);
  if (middle[2] + std::abs(half[2]) + caster.radius < 0)
    return; // the caster is below the plane
  std::array<std::array<float, 2>, 2> centres{};
  std::array<float, 2> widest{};
  for (std::size_t end = 0; end < 2; ++end) {
    const Float3 centre = end == 0 ? middle - half : middle + half;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const Extent extent = shadow_extent(light, local, centre, caster.radius, axis);
      if (!extent.bounded) {
        frame.pairs.push_back(pair);
        spans.add_everywhere(frame.shadowed, item);
        return;
      }
      centres[end][axis] = .5F * (extent.low + extent.high);
      widest[axis] = std::max(widest[axis], .5F * (extent.high - extent.low));
    }
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const float low = std::min(centres[0][axis], centres[1][axis]) - widest[axis];
    const float high = std::max(centres[0][axis], centres[1][axis]) + widest[axis];
    if (low > receiver.size[axis] || high < -receiver.size[axis])
      return;
  }
  std::array<CameraPoint, 6> corners;
  const auto outline = swept_rectangle(centres[0], centres[1], widest[0], widest[1]);
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Float3 world =
        receiver.position + outward(receiver.rotation, {outline[i][0], outline[i][1], 0});
    corners[i] = spans.to_camera(world.data());
  }
  frame.pairs.push_back(pair);
  spans.add_polygon(frame.shadowed, item, corners);
}

} // namespace

void build_spans(Frame& frame) {
  frame.visible.clear();
  frame.mirrored.clear();
  frame.shadowed.clear();
  frame.pairs.clear();
  const SpanBuilder spans(frame);
  const Mirror& mirror = frame.mirror;
  const auto straight = [&](const Float3& point) { return spans.to_camera(point.data()); };
  const auto reflected = [&](const Float3& point) {
    const Float3 image = point - mirror.normal * (2 * (dot(mirror.normal, point) - mirror.offset));
    return spans.to_camera(image.data());
  };
  const int count = static_cast<int>(frame.shapes.size());
  for (int i = 0; i < count; ++i) {
    const Shape& shape = frame.shapes[static_cast<std::size_t>(i)];
    add_shape(spans, frame.visible, i, shape, straight);
    if (mirror.shape >= 0 && i != mirror.shape) {
      const float above = dot(mirror.normal, shape.centre) - mirror.offset;
      const float reach = std::abs(dot(mirror.normal, shape.half_segment)) + shape.radius;
      if (above + reach > 0)
        add_shape(spans, frame.mirrored, i, shape, reflected);
    }
  }
  for (int r = 0; r < frame.opaque; ++r) {
    if (frame.shapes[static_cast<std::size_t>(r)].kind != ShapeKind::plane)
      continue;
    for (int l = 0; l < static_cast<int>(frame.lights.size()); ++l)
      for (int c = 0; c < count && frame.lights[static_cast<std::size_t>(l)].shadowed; ++c)
        if (c != r && frame.shapes[static_cast<std::size_t>(c)].casts_shadow)
          add_shadow(spans, frame, r, c, l);
  }
}

} // namespace troupe::env::caster
