// Finds where rays first hit a solid, from outside or inside, in the solid's frame.
#if defined(TROUPE_ENV_CASTER_MEET_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_MEET_INL_HPP_
#undef TROUPE_ENV_CASTER_MEET_INL_HPP_
#else
#define TROUPE_ENV_CASTER_MEET_INL_HPP_
#endif

#include "env/caster/kernels/rays-inl.hpp"
#include "env/caster/solid.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// The first of two parameters that is not behind the ray's origin; kNowhere if both are behind it.
template <class R>
HWY_INLINE R first_ahead(R from, R to) {
  return select(from >= R(0.0F), from, select(to >= R(0.0F), to, R(kNowhere)));
}

template <class R>
HWY_INLINE R first_ahead(const Interval<R>& in) {
  return select(in.from <= in.to, first_ahead(in.from, in.to), R(kNowhere));
}

/// The interval in which the ray is inside the ball; empty (from > to) if it misses.
template <class R>
HWY_INLINE Interval<R> ball_interval(const Ray<R>& ray, R inverse_squared, R radius) {
  const R middle = -dot(ray.o, ray.d) * inverse_squared;
  const Vec3<R> nearest = point_at(ray, middle);
  const R h = radius * radius - dot(nearest, nearest);
  const R reach = sqrt(max(h, R(0.0F)) * inverse_squared);
  const MaskOf<R> near = h >= R(0.0F);
  return {select(near, middle - reach, R(kNowhere)), select(near, middle + reach, -R(kNowhere))};
}

/// A capsule consists of its side, where |z| <= half, and a half ball at each end.
template <class R>
HWY_INLINE R meet_capsule(const Ray<R>& ray, R inverse_squared, R radius, R half) {
  const Interval<R> side = cylinder_interval(ray, radius, R(kNowhere));
  const MaskOf<R> meets_side = side.from <= side.to;
  R first(kNowhere);
  const auto consider = [&](R t, MaskOf<R> counts) HWY_ATTR {
    first = select(counts & (t >= R(0.0F)) & (t < first), t, first);
  };
  const auto on_side = [&](R t)
                           HWY_ATTR { return meets_side & (abs(ray.o.z + t * ray.d.z) <= half); };
  consider(side.from, on_side(side.from));
  consider(side.to, on_side(side.to));
  for (const float end : {-1.0F, 1.0F}) {
    const Ray<R> moved{{ray.o.x, ray.o.y, ray.o.z - R(end) * half}, ray.d};
    const Interval<R> ball = ball_interval(moved, inverse_squared, radius);
    const MaskOf<R> meets_ball = ball.from <= ball.to;
    const auto beyond = [&](R t) HWY_ATTR {
      return meets_ball & (R(end) * (moved.o.z + t * ray.d.z) >= R(0.0F));
    };
    consider(ball.from, beyond(ball.from));
    consider(ball.to, beyond(ball.to));
  }
  return first;
}

/// Only the front can be hit. A size of 0 means infinite.
template <class R>
HWY_INLINE R meet_plane(const Ray<R>& ray, const std::array<float, 3>& size) {
  const R t = -ray.o.z / not_zero(ray.d.z);
  MaskOf<R> inside = (ray.d.z < R(0.0F)) & (t >= R(0.0F));
  if (size[0] > 0)
    inside = inside & (abs(ray.o.x + t * ray.d.x) <= R(size[0]));
  if (size[1] > 0)
    inside = inside & (abs(ray.o.y + t * ray.d.y) <= R(size[1]));
  return select(inside, t, R(kNowhere));
}

/// Finds hits up to `limit` for the lanes of `wanted`; kNowhere where a ray hits nothing.
template <class R>
HWY_NOINLINE R meet_triangles(const Solid& solid, const Ray<R>& ray, R limit, MaskOf<R> wanted) {
  const R zero(0.0F);
  if (solid.kind == ShapeKind::height_field) {
    FieldHit<R> hit{limit, {zero, zero, zero}};
    intersect_field<true>(*solid.field, ray.o, ray.d, zero, wanted, hit);
    return select(hit.t < limit, hit.t, R(kNowhere));
  }
  MeshHit<R> hit = no_mesh_hit(limit);
  intersect_mesh<true>(solid.mesh, ray.o, ray.d, zero, wanted, hit);
  return select(hit.triangle < IntOf<R>(0), R(kNowhere), hit.t);
}

template <class R>
HWY_INLINE R meet(const Solid& solid, const Ray<R>& ray, R limit, MaskOf<R> wanted) {
  const R squared = max(dot(ray.d, ray.d), R(kTiny));
  const R inverse_squared = R(1.0F) / squared;
  const R radius(solid.size[0]);
  switch (solid.kind) {
  case ShapeKind::plane:
    return meet_plane(ray, solid.size);
  case ShapeKind::sphere:
    return first_ahead(ball_interval(ray, inverse_squared, radius));
  case ShapeKind::capsule:
    return meet_capsule(ray, inverse_squared, radius, R(solid.size[1]));
  case ShapeKind::ellipsoid: {
    const Vec3<R> scale{R(1.0F / solid.size[0]), R(1.0F / solid.size[1]), R(1.0F / solid.size[2])};
    const Ray<R> scaled{{ray.o.x * scale.x, ray.o.y * scale.y, ray.o.z * scale.z},
                        {ray.d.x * scale.x, ray.d.y * scale.y, ray.d.z * scale.z}};
    const R of_scaled = R(1.0F) / max(dot(scaled.d, scaled.d), R(kTiny));
    return first_ahead(ball_interval(scaled, of_scaled, R(1.0F)));
  }
  case ShapeKind::cylinder:
    return first_ahead(cylinder_interval(ray, radius, R(solid.size[1])));
  case ShapeKind::box:
    return first_ahead(box_interval(ray, solid.size));
  default:
    return meet_triangles(solid, ray, limit, wanted);
  }
}

/// The lanes whose ray enters the solid's bounding sphere before `limit`.
template <class R>
HWY_INLINE MaskOf<R> nears(const Solid& solid, const Ray<R>& ray, R inverse_squared, R limit) {
  const Vec3<R> to =
      broadcast<R>(solid.position.data()) + broadcast<R>(solid.centre.data()) - ray.o;
  const R along = clamp(dot(to, ray.d) * inverse_squared, R(0.0F), limit);
  const Vec3<R> off = to - ray.d * along;
  const R reach(solid.radius * 1.0001F + 1e-5F); // a margin, so that rounding loses no hit
  return dot(off, off) <= reach * reach;
}

template <class R>
HWY_INLINE Ray<R> in_frame_of(const Solid& solid, const Ray<R>& ray) {
  const std::array<float, 9>& m = solid.rotation;
  const Vec3<R> o = ray.o - broadcast<R>(solid.position.data());
  const auto turned = [&](const Vec3<R>& a) HWY_ATTR {
    return Vec3<R>{a.x * R(m[0]) + a.y * R(m[3]) + a.z * R(m[6]),
                   a.x * R(m[1]) + a.y * R(m[4]) + a.z * R(m[7]),
                   a.x * R(m[2]) + a.y * R(m[5]) + a.z * R(m[8])};
  };
  return {turned(o), turned(ray.d)};
}

/// A cone around all rays of a packet. The origins of the rays are within `spread` of its apex.
struct PacketCone {
  Vec3<float> apex;
  Vec3<float> axis;  // unit vector
  float cosine = -1; // of half the opening angle
  float sine = 0;
  float spread = 0;
};

/// `valid`: bits of the lanes to include, at least one.
template <class R>
HWY_INLINE PacketCone packet_cone(const Ray<R>& ray, R inverse_length, std::uint32_t valid) {
  alignas(64) float lane[6][kLanes<R>];
  store(ray.o.x, lane[0]);
  store(ray.o.y, lane[1]);
  store(ray.o.z, lane[2]);
  store(ray.d.x * inverse_length, lane[3]);
  store(ray.d.y * inverse_length, lane[4]);
  store(ray.d.z * inverse_length, lane[5]);
  const int first = lowest_bit(valid);
  PacketCone cone;
  cone.apex = {lane[0][first], lane[1][first], lane[2][first]};
  Vec3<float> sum{0, 0, 0};
  float spread = 0; // squared
  for (int i = 0; i < kLanes<R>; ++i) {
    if ((valid >> i & 1) == 0)
      continue;
    sum = sum + Vec3<float>{lane[3][i], lane[4][i], lane[5][i]};
    const Vec3<float> off = Vec3<float>{lane[0][i], lane[1][i], lane[2][i]} - cone.apex;
    spread = max(spread, dot(off, off));
  }
  cone.spread = sqrt(spread);
  cone.axis = sum * (1.0F / max(sqrt(dot(sum, sum)), 1e-6F));
  float cosine = 1;
  for (int i = 0; i < kLanes<R>; ++i)
    if ((valid >> i & 1) != 0)
      cosine = min(cosine,
                   cone.axis.x * lane[3][i] + cone.axis.y * lane[4][i] + cone.axis.z * lane[5][i]);
  cone.cosine = cosine - 1e-4F; // a margin for rounding
  cone.sine = sqrt(max(1.0F - cone.cosine * cone.cosine, 0.0F));
  return cone;
}

/// Calls visit(solid) for the solids whose bounding spheres the cone touches.
template <class R, class Visit>
HWY_INLINE void for_each_in_cone(const SolidSet& set, const PacketCone& cone, const Visit& visit) {
  for (std::size_t at = 0; at < set.solids.size(); at += static_cast<std::size_t>(kLanes<R>)) {
    const auto number = [&](std::size_t k)
                            HWY_ATTR { return load<R>(set.balls + k * set.pitch + at); };
    const Vec3<R> to{number(0) - R(cone.apex.x), number(1) - R(cone.apex.y),
                     number(2) - R(cone.apex.z)};
    const R radius = number(3);
    const Vec3<R> axis{R(cone.axis.x), R(cone.axis.y), R(cone.axis.z)};
    const R along = dot(to, axis);
    const Vec3<R> off = to - axis * along;
    const R reach = (radius + R(cone.spread)) * R(1.0001F) + R(1e-5F);
    MaskOf<R> touched = sqrt(dot(off, off)) * R(cone.cosine) <= reach + along * R(cone.sine);
    if (cone.cosine <= 0)
      touched = radius > R(-1.0F);
    for (std::uint32_t left = bits(touched & (radius > R(-1.0F))); left != 0; left &= left - 1)
      visit(set.solids[at + static_cast<std::size_t>(lowest_bit(left))]);
  }
}

/// Casts the packet of rays that starts at index `at`.
template <class R>
HWY_INLINE void meet_packet(const SolidSet& set, const SolidRays& rays, std::size_t at) {
  const auto number = [&](std::size_t k)
                          HWY_ATTR { return load<R>(rays.rays + k * rays.pitch + at); };
  const Ray<R> ray{{number(0), number(1), number(2)}, {number(3), number(4), number(5)}};
  const R squared = dot(ray.d, ray.d);
  // Also false if a number is not finite.
  const MaskOf<R> valid =
      (squared > R(0.0F)) & (squared < R(kNowhere)) & (dot(ray.o, ray.o) < R(kNowhere));
  const R inverse_squared = R(1.0F) / select(valid, squared, R(1.0F));
  R best = select(valid, min(R(rays.cutoff), R(kNowhere)), R(-1.0F));
  IntOf<R> geom(-1);
  if (any(valid))
    for_each_in_cone<R>(set, packet_cone(ray, sqrt(inverse_squared), bits(valid)),
                        [&](const Solid& solid) HWY_ATTR {
                          MaskOf<R> wanted = valid;
                          if (solid.kind != ShapeKind::plane)
                            wanted = wanted & nears(solid, ray, inverse_squared, best);
                          if (none(wanted))
                            return;
                          const R t = meet(solid, in_frame_of(solid, ray), best, wanted);
                          const MaskOf<R> closer = wanted & (t < best);
                          best = select(closer, t, best);
                          geom = select(closer, IntOf<R>(solid.geom), geom);
                        });
  store(select(geom < IntOf<R>(0), R(-1.0F), best), rays.distances + at);
  store(geom, rays.geoms + at);
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
