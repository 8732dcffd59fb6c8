// Intersects rays with height fields (height_field.hpp), for every number type R of lanes-inl.hpp,
// in the geom's frame. A ray's parameter t is in lengths of its direction, which need not be a unit
// vector.
#if defined(TROUPE_ENV_CASTER_HEIGHT_FIELD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_HEIGHT_FIELD_INL_HPP_
#undef TROUPE_ENV_CASTER_HEIGHT_FIELD_INL_HPP_
#else
#define TROUPE_ENV_CASTER_HEIGHT_FIELD_INL_HPP_
#endif

#include "env/caster/height_field.hpp"
#include "env/caster/kernels/mesh-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <class R>
struct FieldHit {
  R t;            // in: the limit; out: of the hit, if there is one
  Vec3<R> normal; // of the triangle or wall; outward unit vector
};

/// A square of a level.
struct FieldSquare {
  std::int32_t level;
  std::int32_t row;
  std::int32_t column;
};

/// Visits the single-cell squares that a lane of `mask` may hit between t_near and far(), roughly
/// from near to far. `visit(row, column)` returns whether to continue.
template <class R, class Far, class Visit>
HWY_INLINE void walk_field(const HeightFieldView& field, const BoxRays<R>& rays, R t_near,
                           MaskOf<R> mask, const Far& far, const Visit& visit) {
  if (field.heights == nullptr || none(mask))
    return;
  // The packet's first ray determines the order of the four quarters.
  const std::uint32_t lanes = bits(mask);
  float along_x;
  float along_y;
  if constexpr (std::is_same_v<R, float>) {
    along_x = rays.d.x, along_y = rays.d.y;
  } else {
    alignas(64) float lines[2][kLanes<R>];
    store(rays.d.x, lines[0]);
    store(rays.d.y, lines[1]);
    along_x = lines[0][lowest_bit(lanes)];
    along_y = lines[1][lowest_bit(lanes)];
  }
  const int far_column = along_x >= 0 ? 1 : 0;
  const int far_row = along_y >= 0 ? 1 : 0;
  FieldSquare stack[3 * kMaxFieldLevels + 4];
  int size = 0;
  stack[size++] = {field.levels - 1, 0, 0};
  while (size > 0) {
    const FieldSquare square = stack[--size];
    const auto level = static_cast<std::size_t>(square.level);
    const float* range =
        field.ranges + field.offset[level] + 2 * (square.row * field.pitch[level] + square.column);
    const int row0 = square.row << square.level;
    const int column0 = square.column << square.level;
    const int row1 = std::min(row0 + (1 << square.level), field.rows - 1);
    const int column1 = std::min(column0 + (1 << square.level), field.columns - 1);
    const auto x = [&](int c) { return static_cast<float>(c) * field.step[0] - field.size[0]; };
    const auto y = [&](int r) { return static_cast<float>(r) * field.step[1] - field.size[1]; };
    const float low[3] = {x(column0), y(row0), range[0]};
    const float high[3] = {x(column1), y(row1), range[1]};
    const MaskOf<R> meets =
        mask & meets_box(rays, broadcast<R>(low), broadcast<R>(high), t_near, far());
    if (none(meets))
      continue;
    if (square.level == 0) {
      if (!visit(square.row, square.column))
        return;
      continue;
    }
    const int below_level = square.level - 1;
    const int below_rows = ((field.rows - 2) >> below_level) + 1;
    const int below_columns = ((field.columns - 2) >> below_level) + 1;
    for (int i = 0; i < 4; ++i) { // farthest first, since the stack reverses the order
      const int r = 2 * square.row + ((i & 1) == 0 ? far_row : 1 - far_row);
      const int c = 2 * square.column + ((i & 2) == 0 ? far_column : 1 - far_column);
      if (r < below_rows && c < below_columns)
        stack[size++] = {below_level, r, c};
    }
  }
}

/// The corners of a cell: the one with the smallest x and y, the next in x, the next in y, and the
/// next in both.
struct FieldCell {
  float corner[4][3];
};

HWY_INLINE FieldCell field_cell(const HeightFieldView& field, int row, int column) {
  FieldCell cell;
  for (int i = 0; i < 4; ++i) {
    const int r = row + (i >> 1);
    const int c = column + (i & 1);
    cell.corner[i][0] = static_cast<float>(c) * field.step[0] - field.size[0];
    cell.corner[i][1] = static_cast<float>(r) * field.step[1] - field.size[1];
    cell.corner[i][2] =
        field.heights[static_cast<std::size_t>(r) * static_cast<std::size_t>(field.columns)
                      + static_cast<std::size_t>(c)];
  }
  return cell;
}

/// Returns the lanes whose point on a wall's plane is on the wall. The point is (across, z), with
/// `across` measured along the wall; the wall's upper edge follows the heights of the border.
template <class R>
HWY_INLINE MaskOf<R> on_wall(const HeightFieldView& field, R across, R z, float half, float step,
                             int count, std::int32_t first, std::int32_t stride) {
  const R place =
      clamp((across + R(half)) * R(1.0F / step), R(0.0F), R(static_cast<float>(count - 1)));
  const R low = min(floor(place), R(static_cast<float>(count - 2)));
  const IntOf<R> at = IntOf<R>(first) + to_integer(low) * IntOf<R>(stride);
  const R a = gather(field.heights, at);
  const R b = gather(field.heights, at + IntOf<R>(stride));
  const R top = a + (b - a) * (place - low);
  return (abs(across) <= R(half)) & (z <= top) & (z >= R(-field.bottom));
}

/// Intersects the walls and the floor with the lanes of `mask`. With kBothSides, hits from inside
/// also count. Calls `found(t, axis, side, lanes)` with the lanes that hit a side between t_near
/// and far().
template <bool kBothSides, class R, class Far, class Found>
HWY_INLINE void meet_field_sides(const HeightFieldView& field, const BoxRays<R>& rays, R t_near,
                                 MaskOf<R> mask, const Far& far, const Found& found) {
  const R zero(0.0F);
  const std::int32_t last_row = (field.rows - 1) * field.columns;
  const auto counts = [&](R t, MaskOf<R> from_outside) HWY_ATTR {
    MaskOf<R> lanes = mask & (t > t_near) & (t < far());
    if constexpr (!kBothSides)
      lanes = lanes & from_outside;
    return lanes;
  };
  for (const float side : {-1.0F, 1.0F}) {
    R t = (R(side * field.size[0]) - rays.o.x) * rays.inverse.x;
    MaskOf<R> lanes = counts(t, rays.d.x * R(side) < zero);
    if (any(lanes)) {
      lanes = lanes
              & on_wall(field, rays.o.y + t * rays.d.y, rays.o.z + t * rays.d.z, field.size[1],
                        field.step[1], field.rows, side < 0 ? 0 : field.columns - 1, field.columns);
      found(t, 0, side, lanes);
    }
    t = (R(side * field.size[1]) - rays.o.y) * rays.inverse.y;
    lanes = counts(t, rays.d.y * R(side) < zero);
    if (any(lanes)) {
      lanes = lanes
              & on_wall(field, rays.o.x + t * rays.d.x, rays.o.z + t * rays.d.z, field.size[0],
                        field.step[0], field.columns, side < 0 ? 0 : last_row, 1);
      found(t, 1, side, lanes);
    }
  }
  const R t = (R(-field.bottom) - rays.o.z) * rays.inverse.z;
  MaskOf<R> lanes = counts(t, rays.d.z > zero);
  lanes = lanes & (abs(rays.o.x + t * rays.d.x) <= R(field.size[0]))
          & (abs(rays.o.y + t * rays.d.y) <= R(field.size[1]));
  if (any(lanes))
    found(t, 2, -1.0F, lanes);
}

/// Finds the nearest hit of each lane of `mask` with the outside of the surface, walls and floor,
/// t_near < t < hit.t. With kBothSides, hits from inside also count.
template <bool kBothSides = false, class R>
HWY_INLINE void intersect_field(const HeightFieldView& field, const Vec3<R>& o, const Vec3<R>& d,
                                R t_near, MaskOf<R> mask, FieldHit<R>& hit) {
  if (field.heights == nullptr)
    return;
  const BoxRays<R> rays = make_box_rays(o, d);
  const auto far = [&]() HWY_ATTR { return hit.t; };
  const auto take = [&](MaskOf<R> lanes, R t, const Vec3<R>& normal) HWY_ATTR {
    hit.t = select(lanes, t, hit.t);
    hit.normal = select<R>(lanes, normal, hit.normal);
  };
  walk_field(field, rays, t_near, mask, far, [&](int row, int column) HWY_ATTR {
    const FieldCell cell = field_cell(field, row, column);
    for (int half = 0; half < 2; ++half) {
      const float* a = cell.corner[0];
      const float* b = half == 0 ? cell.corner[1] : cell.corner[3];
      const float* c = half == 0 ? cell.corner[3] : cell.corner[2];
      const TriangleMeeting<R> meeting = meet_triangle<kBothSides>(o, d, a, b, c);
      const MaskOf<R> closer = mask & meeting.inside & (meeting.t > t_near) & (meeting.t < hit.t);
      if (none(closer))
        continue;
      // The slopes of z along x and y give the normal.
      const float* flank = half == 0 ? b : c;
      const float dx = (half == 0 ? flank[2] - a[2] : b[2] - c[2]) / field.step[0];
      const float dy = (half == 0 ? c[2] - b[2] : flank[2] - a[2]) / field.step[1];
      const float scale = 1.0F / std::sqrt(1.0F + dx * dx + dy * dy);
      take(closer, meeting.t, {R(-dx * scale), R(-dy * scale), R(scale)});
    }
    return true;
  });
  meet_field_sides<kBothSides>(
      field, rays, t_near, mask, far, [&](R t, int axis, float side, MaskOf<R> lanes) HWY_ATTR {
        const R out(side);
        const R zero(0.0F);
        take(lanes, t, {axis == 0 ? out : zero, axis == 1 ? out : zero, axis == 2 ? out : zero});
      });
}

/// Returns the lanes of `mask` whose ray hits any part, from either side, with t_near < t < t_far.
template <class R>
HWY_INLINE MaskOf<R> field_between(const HeightFieldView& field, const Vec3<R>& o, const Vec3<R>& d,
                                   R t_near, R t_far, MaskOf<R> mask) {
  MaskOf<R> met = no_lanes<R>();
  if (field.heights == nullptr)
    return met;
  const BoxRays<R> rays = make_box_rays(o, d);
  const auto far = [&]() HWY_ATTR { return select(met, R(-1e30F), t_far); };
  walk_field(field, rays, t_near, mask, far, [&](int row, int column) HWY_ATTR {
    const FieldCell cell = field_cell(field, row, column);
    for (int half = 0; half < 2; ++half) {
      const TriangleMeeting<R> meeting = meet_triangle<true>(
          o, d, cell.corner[0], cell.corner[half == 0 ? 1 : 3], cell.corner[half == 0 ? 3 : 2]);
      met = met | (mask & meeting.inside & (meeting.t > t_near) & (meeting.t < t_far));
    }
    return any(andnot(mask, met));
  });
  meet_field_sides<true>(field, rays, t_near, mask, far,
                         [&](R, int, float, MaskOf<R> lanes) HWY_ATTR { met = met | lanes; });
  return met;
}

// ---- the samples of a pixel on the surface
//
// OpenGL lights each sample with the triangle under it, but at the pixel's centre, where that
// triangle's plane may be above or below the surface. This decides what a height field looks like
// at a distance, where triangles are smaller than pixels: colours are means over several triangles,
// and where the plane is below the surface, its light is shadowed (speckles around lamps).

/// The plane of the triangle at (x, y): z = height + slope_x * (x' - x) + slope_y * (y' - y).
template <class R>
struct FieldFacet {
  R height;
  R slope_x;
  R slope_y;
};

template <class R>
HWY_INLINE FieldFacet<R> field_facet(const HeightFieldView& field, R x, R y) {
  const R zero(0.0F);
  const R column = clamp((x + R(field.size[0])) * R(1.0F / field.step[0]), zero,
                         R(static_cast<float>(field.columns - 1)));
  const R row = clamp((y + R(field.size[1])) * R(1.0F / field.step[1]), zero,
                      R(static_cast<float>(field.rows - 1)));
  const R left = min(floor(column), R(static_cast<float>(field.columns - 2)));
  const R low = min(floor(row), R(static_cast<float>(field.rows - 2)));
  const R across = column - left;
  const R up = row - low;
  const IntOf<R> pitch(field.columns);
  const IntOf<R> at = to_integer(low) * pitch + to_integer(left);
  const MaskOf<R> right_half = across >= up;
  const R corner = gather(field.heights, at);
  const R opposite = gather(field.heights, at + pitch + IntOf<R>(1));
  const R flank = gather(field.heights, at + select(right_half, IntOf<R>(1), pitch));
  const R dx = select(right_half, flank - corner, opposite - flank);
  const R dy = select(right_half, opposite - flank, flank - corner);
  return {corner + dx * across + dy * up, dx * R(1.0F / field.step[0]),
          dy * R(1.0F / field.step[1])};
}

/// The outward unit normal of the surface, wall or floor at `point`.
template <class R>
HWY_INLINE Vec3<R> field_normal(const HeightFieldView& field, const Vec3<R>& point) {
  const R zero(0.0F);
  const R one(1.0F);
  const FieldFacet<R> facet = field_facet(field, point.x, point.y);
  const R scale = one / sqrt(one + facet.slope_x * facet.slope_x + facet.slope_y * facet.slope_y);
  const Vec3<R> up{-facet.slope_x * scale, -facet.slope_y * scale, scale};
  const R reach = (R(field.size[0]) + R(field.size[1]) + abs(point.z)) * R(1e-4F);
  const MaskOf<R> beside = abs(point.z - facet.height) * scale > reach;
  if (none(beside))
    return up;
  const R off_x = abs(R(field.size[0]) - abs(point.x));
  const R off_y = abs(R(field.size[1]) - abs(point.y));
  const R off_z = abs(point.z + R(field.bottom));
  const MaskOf<R> on_floor = (off_z < off_x) & (off_z < off_y);
  const MaskOf<R> on_x = andnot(off_x <= off_y, on_floor);
  const Vec3<R> wall{select(on_x, copysign(one, point.x), zero),
                     select(on_x | on_floor, zero, copysign(one, point.y)),
                     select(on_floor, -one, zero)};
  return select<R>(beside, wall, up);
}

template <class R>
struct FieldSample {
  Vec3<R> normal;
  Vec3<R> point;    // where the pixel's centre ray meets the plane of the sample's triangle
  R above;          // height of the point above the surface, metres
  MaskOf<R> inside; // false: use the pixel's centre instead
};

/// Makes one sample of a pixel. The pixel's centre ray (centre_o, centre_d) meets the surface at
/// `point`, with normal `normal`; (o, d) is the sample's ray.
template <class R>
HWY_INLINE FieldSample<R> field_sample(const HeightFieldView& field, const Vec3<R>& o,
                                       const Vec3<R>& d, const Vec3<R>& centre_o,
                                       const Vec3<R>& centre_d, const Vec3<R>& normal,
                                       const Vec3<R>& point) {
  const R one(1.0F);
  R slope = dot(normal, d);
  MaskOf<R> inside = slope < R(-1e-4F);
  R t = dot(normal, point - o) / select(inside, slope, -one);
  Vec3<R> at = o + d * t;
  FieldFacet<R> facet = field_facet(field, at.x, at.y);
  // Approaches the triangle that the sample's ray meets, from one plane to the next.
  for (int step = 0; step < 2; ++step) {
    slope = d.z - facet.slope_x * d.x - facet.slope_y * d.y;
    inside = inside & (slope < R(-1e-4F));
    const R over = at.z - facet.height;
    at = at - d * (over / select(inside, slope, -one));
    if (step == 0)
      facet = field_facet(field, at.x, at.y);
    else
      facet.height = at.z;
  }
  const R scale = one / sqrt(one + facet.slope_x * facet.slope_x + facet.slope_y * facet.slope_y);
  FieldSample<R> sample;
  sample.normal = {-facet.slope_x * scale, -facet.slope_y * scale, scale};
  slope = dot(sample.normal, centre_d);
  inside = inside & (slope < R(-1e-4F)) & (abs(at.x) <= R(field.size[0]))
           & (abs(at.y) <= R(field.size[1]));
  t = dot(sample.normal, at - centre_o) / select(inside, slope, -one);
  sample.point = centre_o + centre_d * t;
  sample.above = sample.point.z - field_facet(field, sample.point.x, sample.point.y).height;
  sample.inside = inside;
  return sample;
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
