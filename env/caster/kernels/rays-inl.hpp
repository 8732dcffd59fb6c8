// The rays of a packet of pixels, and their intersections with shapes.
#if defined(TROUPE_ENV_CASTER_RAYS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_RAYS_INL_HPP_
#undef TROUPE_ENV_CASTER_RAYS_INL_HPP_
#else
#define TROUPE_ENV_CASTER_RAYS_INL_HPP_
#endif

#include "env/caster/frame.hpp"
#include "env/caster/kernels/height_field-inl.hpp"
#include "env/caster/kernels/lanes-inl.hpp"
#include "env/caster/kernels/mesh-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

inline constexpr float kNowhere = 3e38F; // the parameter of a ray that hits nothing
inline constexpr float kTiny = 1e-20F;
// Meshes and height fields, which may shadow themselves, cast shadows on themselves only from this
// distance on, which is about the error of MuJoCo's shadow map.
inline constexpr float kShadowPart = 2e-3F;  // fraction of the distance to a light
inline constexpr float kShadowStart = 1e-2F; // in metres, for a directional light
// Part of this distance for other shapes, whose surfaces may coincide with theirs.
inline constexpr float kShadowOther = .1F;

/// Where the rays of a packet pass through the picture.
template <class R>
struct Packet {
  R u, v;
  R squared;         // |direction|^2
  R inverse_squared; // 1 / squared
  R inverse_length;
};

template <bool kOrthographic, class R>
HWY_INLINE Packet<R> make_packet(R u, R v) {
  if constexpr (kOrthographic)
    return {u, v, R(1.0F), R(1.0F), R(1.0F)};
  const R squared = R(1.0F) + u * u + v * v;
  const R inverse = R(1.0F) / squared;
  return {u, v, squared, inverse, sqrt(inverse)};
}

template <class R>
struct Ray {
  Vec3<R> o, d;
};

template <bool kOrthographic, class R>
HWY_INLINE Ray<R> ray_in(const RayFrame& frame, const Packet<R>& packet) {
  const Vec3<R> o = broadcast<R>(frame.origin.data());
  const Vec3<R> right = broadcast<R>(frame.right.data());
  const Vec3<R> up = broadcast<R>(frame.up.data());
  const Vec3<R> forward = broadcast<R>(frame.forward.data());
  const Vec3<R> across = right * packet.u + up * packet.v;
  if constexpr (kOrthographic)
    return {o + across, forward};
  else
    return {o, forward + across};
}

template <class R>
HWY_INLINE Vec3<R> point_at(const Ray<R>& ray, R t) {
  return ray.o + ray.d * t;
}

/// Moves a number away from zero, so that its inverse is finite.
template <class R>
HWY_INLINE R not_zero(R a) {
  return select(abs(a) < R(kTiny), copysign(R(kTiny), a), a);
}

// ---- nearest hits: the parameter at which the ray enters, kNowhere if it misses. Computed from
// the point of closest approach, because cameras may be far away.

template <class R>
HWY_INLINE R enter_ball(const Ray<R>& ray, R inverse_squared, R radius) {
  const R middle = -dot(ray.o, ray.d) * inverse_squared;
  const Vec3<R> nearest = point_at(ray, middle);
  const R h = radius * radius - dot(nearest, nearest);
  const R t = middle - sqrt(max(h, R(0.0F)) * inverse_squared);
  return select(h >= R(0.0F), t, R(kNowhere));
}

template <class R>
HWY_INLINE R enter_capsule(const Ray<R>& ray, R inverse_squared, R radius, R half) {
  const R a = max(ray.d.x * ray.d.x + ray.d.y * ray.d.y, R(kTiny));
  const R inverse = R(1.0F) / a;
  const R middle = -(ray.o.x * ray.d.x + ray.o.y * ray.d.y) * inverse;
  const R x = ray.o.x + middle * ray.d.x;
  const R y = ray.o.y + middle * ray.d.y;
  const R h = radius * radius - (x * x + y * y);
  const MaskOf<R> near = h >= R(0.0F);
  if (none(near))
    return R(kNowhere);
  const R side = middle - sqrt(max(h, R(0.0F)) * inverse);
  const R z = ray.o.z + side * ray.d.z;
  const MaskOf<R> on_side = abs(z) <= half;
  R t = select(near & on_side, side, R(kNowhere));
  if (any(andnot(near, on_side))) {
    const Ray<R> moved{{ray.o.x, ray.o.y, ray.o.z - copysign(half, z)}, ray.d};
    t = select(near & !on_side, enter_ball(moved, inverse_squared, radius), t);
  }
  return t;
}

template <class R>
struct Interval {
  R from, to;
};

/// The interval in which the ray is between -half and half along one axis.
template <class R>
HWY_INLINE Interval<R> slab(R origin, R direction, R half) {
  const R inverse = R(1.0F) / not_zero(direction);
  const R a = (-half - origin) * inverse;
  const R b = (half - origin) * inverse;
  return {min(a, b), max(a, b)};
}

template <class R>
HWY_INLINE Interval<R> box_interval(const Ray<R>& ray, const std::array<float, 3>& size) {
  const Interval<R> x = slab(ray.o.x, ray.d.x, R(size[0]));
  const Interval<R> y = slab(ray.o.y, ray.d.y, R(size[1]));
  const Interval<R> z = slab(ray.o.z, ray.d.z, R(size[2]));
  return {max(max(x.from, y.from), z.from), min(min(x.to, y.to), z.to)};
}

/// The interval in which the ray is inside the cylinder; empty (from > to) if it misses.
template <class R>
HWY_INLINE Interval<R> cylinder_interval(const Ray<R>& ray, R radius, R half) {
  const R a = max(ray.d.x * ray.d.x + ray.d.y * ray.d.y, R(kTiny));
  const R inverse = R(1.0F) / a;
  const R middle = -(ray.o.x * ray.d.x + ray.o.y * ray.d.y) * inverse;
  const R x = ray.o.x + middle * ray.d.x;
  const R y = ray.o.y + middle * ray.d.y;
  const R h = radius * radius - (x * x + y * y);
  const R reach = sqrt(max(h, R(0.0F)) * inverse);
  const Interval<R> z = slab(ray.o.z, ray.d.z, half);
  const MaskOf<R> near = h >= R(0.0F);
  return {select(near, max(middle - reach, z.from), R(kNowhere)), min(middle + reach, z.to)};
}

template <class R>
HWY_INLINE R enter_plane(const Ray<R>& ray, const Shape& shape) {
  // Both sides count; the sign of the direction does not matter.
  const R t = -ray.o.z / not_zero(ray.d.z);
  const MaskOf<R> inside = (t > R(0.0F)) & (abs(ray.o.x + t * ray.d.x) <= R(shape.size[0]))
                           & (abs(ray.o.y + t * ray.d.y) <= R(shape.size[1]));
  return select(inside, t, R(kNowhere));
}

/// The common origin of all camera rays; null if they have different ones.
template <bool kOrthographic>
HWY_INLINE const float* common_origin(const RayFrame& frame) {
  return kOrthographic ? nullptr : frame.origin.data();
}

/// Meshes, skins and height fields. Not inlined, because the loops are too large to copy to every
/// call.
template <class R>
HWY_NOINLINE R enter_triangles(const Shape& shape, const Ray<R>& ray, R limit, const float* eye) {
  const R zero(0.0F);
  const MaskOf<R> everywhere = limit > zero;
  if (shape.kind == ShapeKind::height_field) {
    FieldHit<R> hit{limit, {zero, zero, zero}};
    intersect_field(*shape.field, ray.o, ray.d, zero, everywhere, hit);
    return select(hit.t < limit, hit.t, R(kNowhere));
  }
  MeshHit<R> hit = no_mesh_hit(limit);
  intersect_mesh(shape.mesh, ray.o, ray.d, zero, everywhere, hit, eye);
  return select(hit.triangle < IntOf<R>(0), R(kNowhere), hit.t);
}

/// The parameters at which the packet's rays enter the shape; kNowhere where they miss. `frame` is
/// the camera, mirrored or not, in the shape's frame. Hits beyond `limit` may be missed.
template <bool kOrthographic, class R>
HWY_INLINE R enter(const Shape& shape, const RayFrame& frame, const Packet<R>& packet,
                   R limit = R(kNowhere)) {
  const Ray<R> ray = ray_in<kOrthographic>(frame, packet);
  switch (shape.kind) {
  case ShapeKind::plane:
    return enter_plane(ray, shape);
  case ShapeKind::sphere:
    return enter_ball(ray, packet.inverse_squared, R(shape.size[0]));
  case ShapeKind::capsule:
    return enter_capsule(ray, packet.inverse_squared, R(shape.size[0]), R(shape.size[2]));
  case ShapeKind::ellipsoid: {
    const R squared = max(dot(ray.d, ray.d), R(kTiny));
    return enter_ball(ray, R(1.0F) / squared, R(1.0F));
  }
  case ShapeKind::cylinder: {
    const Interval<R> in = cylinder_interval(ray, R(shape.size[0]), R(shape.size[2]));
    return select(in.from <= in.to, in.from, R(kNowhere));
  }
  case ShapeKind::box: {
    const Interval<R> in = box_interval(ray, shape.size);
    return select(in.from <= in.to, in.from, R(kNowhere));
  }
  default:
    return enter_triangles(shape, ray, limit, common_origin<kOrthographic>(frame));
  }
}

// ---- occlusion: whether the ray from `ray.o` along `ray.d` passes through the shape before
// parameter `last`.

template <class R>
HWY_INLINE MaskOf<R> passes_ball(const Ray<R>& ray, R last, R radius) {
  const R squared = max(dot(ray.d, ray.d), R(kTiny));
  const R t = clamp(-dot(ray.o, ray.d) / squared, R(0.0F), last);
  const Vec3<R> nearest = point_at(ray, t);
  return dot(nearest, nearest) < radius * radius;
}

template <class R>
HWY_INLINE MaskOf<R> passes_capsule(const Ray<R>& ray, R last, R radius, R half) {
  const R flat = max(ray.d.x * ray.d.x + ray.d.y * ray.d.y, R(kTiny));
  const R squared = max(flat + ray.d.z * ray.d.z, R(kTiny));
  const R zero = R(0.0F);
  const R first =
      clamp(-(ray.o.x * ray.d.x + ray.o.y * ray.d.y) / flat, zero, last); // nearest to the axis
  const R z = clamp(ray.o.z + first * ray.d.z, -half, half);
  const Ray<R> moved{{ray.o.x, ray.o.y, ray.o.z - z}, ray.d};
  const R t = clamp(-dot(moved.o, moved.d) / squared, zero, last); // nearest to (0, 0, z)
  const Vec3<R> nearest = point_at(ray, t);
  const R off = nearest.z - clamp(nearest.z, -half, half);
  return nearest.x * nearest.x + nearest.y * nearest.y + off * off < radius * radius;
}

template <class R>
HWY_INLINE MaskOf<R> passes_plane(const Ray<R>& ray, R last, const Shape& shape) {
  const R t = -ray.o.z / not_zero(ray.d.z);
  return (t > R(0.0F)) & (t < last) & (abs(ray.o.x + t * ray.d.x) <= R(shape.size[0]))
         & (abs(ray.o.y + t * ray.d.y) <= R(shape.size[1]));
}

template <class R>
HWY_NOINLINE MaskOf<R> darkens_triangles(const Shape& shape, const Ray<R>& ray, R first, R last,
                                         MaskOf<R> wanted) {
  if (shape.kind == ShapeKind::height_field)
    return field_between(*shape.field, ray.o, ray.d, first, last, wanted);
  return mesh_between(shape.mesh, ray.o, ray.d, first, last, wanted);
}

/// The parameter from which on meshes and height fields cast shadows.
HWY_INLINE float shadow_start(const FrameNumbers& frame, bool directional, bool on_itself) {
  const float start = directional ? kShadowStart * frame.shadow_scale : kShadowPart;
  return on_itself ? start : start * kShadowOther;
}

/// For the lanes of `wanted`: whether the shape is between `point` (in its frame) and the light.
/// `first`: shadow_start().
template <class R>
HWY_INLINE MaskOf<R> darkens(const Shape& shape, const Vec3<R>& point, int light, bool directional,
                             float first, MaskOf<R> wanted) {
  const auto& local = shape.lights[static_cast<std::size_t>(light)];
  Vec3<R> toward = broadcast<R>(local.toward.data());
  const Vec3<R> scale = broadcast<R>(shape.inverse_size.data());
  if (shape.kind == ShapeKind::ellipsoid)
    toward = {toward.x * scale.x, toward.y * scale.y, toward.z * scale.z};
  const R last = directional ? R(kNowhere) : R(1.0F);
  const Ray<R> ray{point, directional ? toward : toward - point};
  const auto meets = [&](const Interval<R>& in) HWY_ATTR {
    return (in.from <= in.to) & (in.to > R(0.0F)) & (in.from < last);
  };
  switch (shape.kind) {
  case ShapeKind::plane:
    return passes_plane(ray, last, shape);
  case ShapeKind::sphere:
    return passes_ball(ray, last, R(shape.size[0]));
  case ShapeKind::capsule:
    return passes_capsule(ray, last, R(shape.size[0]), R(shape.size[2]));
  case ShapeKind::ellipsoid:
    return passes_ball(ray, last, R(1.0F));
  case ShapeKind::cylinder:
    return meets(cylinder_interval(ray, R(shape.size[0]), R(shape.size[2])));
  case ShapeKind::box:
    return meets(box_interval(ray, shape.size));
  default:
    return darkens_triangles(shape, ray, R(first), last, wanted);
  }
}

// ---- normals

/// The outward unit normal at a point of the surface in the shape's frame (for ellipsoids, the
/// scaled frame).
template <class R>
HWY_INLINE Vec3<R> normal_at(const Shape& shape, const Vec3<R>& point) {
  const R zero(0.0F);
  switch (shape.kind) {
  case ShapeKind::sphere:
    return point * R(shape.inverse_size[0]);
  case ShapeKind::capsule: {
    const R half(shape.size[2]);
    const Vec3<R> off{point.x, point.y, point.z - clamp(point.z, -half, half)};
    return off * R(shape.inverse_size[0]);
  }
  case ShapeKind::ellipsoid:
    return normalized(Vec3<R>{point.x * R(shape.inverse_size[0]),
                              point.y * R(shape.inverse_size[1]),
                              point.z * R(shape.inverse_size[2])});
  case ShapeKind::cylinder: {
    const R beside = R(shape.size[0]) - sqrt(point.x * point.x + point.y * point.y);
    const MaskOf<R> on_end = R(shape.size[2]) - abs(point.z) < beside;
    const R scale(shape.inverse_size[0]);
    return {select(on_end, zero, point.x * scale), select(on_end, zero, point.y * scale),
            select(on_end, copysign(R(1.0F), point.z), zero)};
  }
  case ShapeKind::box: {
    const R x = R(shape.size[0]) - abs(point.x); // depth below each face
    const R y = R(shape.size[1]) - abs(point.y);
    const R z = R(shape.size[2]) - abs(point.z);
    const MaskOf<R> on_x = (x <= y) & (x <= z);
    const MaskOf<R> on_y = andnot(y <= z, on_x);
    const R one(1.0F);
    return {select(on_x, copysign(one, point.x), zero), select(on_y, copysign(one, point.y), zero),
            select(on_x | on_y, zero, copysign(one, point.z))};
  }
  default:
    return {zero, zero, R(1.0F)};
  }
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
