// Maps points of a shape to its texture, for every number type R of lanes-inl.hpp. Texture
// coordinates span the texture from 0 to 1; v increases with the rows. Safe for any numbers,
// including NaN.
#if defined(TROUPE_ENV_CASTER_TEXTURE_PLACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_TEXTURE_PLACE_INL_HPP_
#undef TROUPE_ENV_CASTER_TEXTURE_PLACE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_TEXTURE_PLACE_INL_HPP_
#endif

#include "env/caster/kernels/lanes-inl.hpp"
#include "env/caster/textures.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// Texture coordinates and how they change per metre in the shape's frame.
template <class R>
struct TexturePlace {
  R u;
  R v;
  Vec3<R> du;
  Vec3<R> dv;
  Vec3<R> flat{}; // meshes and skins: unit normal of the triangle, not the shading normal
};

/// The angle of (x, y) from the x axis in turns, [0, 1), with an error up to 1e-5. 0 for (0, 0).
template <class R>
HWY_INLINE R turns(R y, R x) {
  const R ax = abs(x);
  const R ay = abs(y);
  const R ratio = min(ax, ay) / max(max(ax, ay), R(1e-30F));
  const R s = ratio * ratio; // odd polynomial for the arctangent in [0, 1]
  const R series =
      ratio
      * (R(0.999866F)
         + s * (R(-0.3302995F) + s * (R(0.180141F) + s * (R(-0.085133F) + s * R(0.0208351F)))));
  const R half_pi(1.57079633F);
  const R first = select(ay > ax, half_pi - series, series);
  const R second = select(x < R(0.0F), R(3.14159265F) - first, first);
  const R part = second * R(0.159154943F);
  const R whole = select(y < R(0.0F), R(1.0F) - part, part);
  return select(whole >= R(1.0F), R(0.0F), whole);
}

/// Longitude of p in turns and its change per unit.
template <class R>
HWY_INLINE void place_longitude(const Vec3<R>& p, R& u, Vec3<R>& du) {
  u = turns(p.y, p.x);
  const R scale = R(0.159154943F) / max(p.x * p.x + p.y * p.y, R(1e-8F));
  du = {-p.y * scale, p.x * scale, R(0.0F)};
}

/// Latitude of a point on the unit sphere in turns, [-1/4, 1/4], and its change per unit.
template <class R>
HWY_INLINE void place_latitude(const Vec3<R>& p, R& turns_up, Vec3<R>& change) {
  const R across = sqrt(p.x * p.x + p.y * p.y);
  const R part = turns(abs(p.z), across);
  turns_up = copysign(part, p.z);
  const R unit = R(0.159154943F) / max(across * across + p.z * p.z, R(1e-8F));
  const R scale = -p.z * unit / max(across, R(1e-4F));
  change = {p.x * scale, p.y * scale, across * unit};
}

template <class R>
HWY_INLINE TexturePlace<R> place_on_box(const Vec3<R>& p, const Vec3<R>& normal) {
  const R half(0.5F);
  const R zero(0.0F);
  const R nx = abs(normal.x);
  const R ny = abs(normal.y);
  const R nz = abs(normal.z);
  const MaskOf<R> top = (nz >= nx) & (nz >= ny);
  const MaskOf<R> x_face = andnot(nx >= ny, top);
  const R u = select(x_face, p.y, p.x);
  const R v = select(top, p.y, p.z);
  return {(u + R(1.0F)) * half,
          (R(1.0F) - v) * half,
          {select(x_face, zero, half), select(x_face, half, zero), zero},
          {zero, select(top, -half, zero), select(top, zero, -half)}};
}

template <class R>
HWY_INLINE TexturePlace<R> place_on_sphere(const Vec3<R>& p) {
  TexturePlace<R> place;
  place_longitude(p, place.u, place.du);
  R up;
  Vec3<R> change;
  place_latitude(p, up, change);
  place.v = R(0.5F) - up * R(2.0F);
  place.dv = change * R(-2.0F);
  return place;
}

/// `p`: x and y divided by the radius, z divided by the half length of the tube. `ratio`: half
/// length / radius.
template <class R>
HWY_INLINE TexturePlace<R> place_on_capsule(const Vec3<R>& p, R ratio) {
  const R zero(0.0F);
  const R one(1.0F);
  const R half(0.5F);
  TexturePlace<R> place;
  place_longitude(p, place.u, place.du);
  const MaskOf<R> cap = abs(p.z) > one;
  const Vec3<R> round{p.x, p.y, (p.z - copysign(one, p.z)) * ratio};
  R up;
  Vec3<R> change;
  place_latitude(round, up, change);
  const R on_cap = select(p.z > zero, one - up * R(4.0F), up * R(-4.0F));
  place.v = select(cap, on_cap, (one - p.z) * half);
  place.dv = {select(cap, change.x * R(-4.0F), zero), select(cap, change.y * R(-4.0F), zero),
              select(cap, change.z * R(-4.0F) * ratio, -half)};
  return place;
}

template <class R>
HWY_INLINE TexturePlace<R> place_on_cylinder(const Vec3<R>& p, const Vec3<R>& normal) {
  const R zero(0.0F);
  const R half(0.5F);
  TexturePlace<R> place;
  place_longitude(p, place.u, place.du);
  const MaskOf<R> cap = square(normal.z) > square(normal.x) + square(normal.y);
  place.u = select(cap, (p.x + R(1.0F)) * half, place.u);
  place.v = select(cap, (p.y + R(1.0F)) * half, (R(1.0F) - p.z) * half);
  place.du = {select(cap, half, place.du.x), select(cap, zero, place.du.y), zero};
  place.dv = {zero, select(cap, half, zero), select(cap, zero, -half)};
  return place;
}

/// Applies the material's scale to a mesh's own coordinates or to unit coordinates.
template <class R>
HWY_INLINE TexturePlace<R> scale_place(const TextureMapping& mapping,
                                       const TexturePlace<R>& place) {
  const R u(mapping.scale[0]);
  const R v(mapping.scale[1]);
  return {place.u * u, place.v * v, place.du * u, place.dv * v};
}

/// The coordinates at `point` (metres, in the shape's frame) of a surface with normal `normal`.
/// Does not support the layouts none, given, cube and cube_capsule; use scale_place() and
/// cube_direction() for them.
template <class R>
HWY_INLINE TexturePlace<R> place_texture(const TextureMapping& mapping, const Vec3<R>& point,
                                         const Vec3<R>& normal) {
  const R zero(0.0F);
  if (mapping.layout == TextureLayout::planar) {
    const R u(0.5F * mapping.scale[0]);
    const R v(-0.5F * mapping.scale[1]);
    return {point.x * u - R(0.5F), point.y * v - R(0.5F), {u, zero, zero}, {zero, v, zero}};
  }
  const Vec3<R> inverse = broadcast<R>(mapping.inverse_size.data());
  const Vec3<R> p{point.x * inverse.x, point.y * inverse.y, point.z * inverse.z};
  TexturePlace<R> place{zero, zero, {zero, zero, zero}, {zero, zero, zero}};
  switch (mapping.layout) {
  case TextureLayout::box:
    place = place_on_box(p, normal);
    break;
  case TextureLayout::sphere:
    place = place_on_sphere(p);
    break;
  case TextureLayout::capsule:
    place = place_on_capsule(p, R(mapping.inverse_size[0] / mapping.inverse_size[2]));
    break;
  case TextureLayout::cylinder:
    place = place_on_cylinder(p, normal);
    break;
  default:
    break;
  }
  const auto per_metre = [&](const Vec3<R>& a) {
    return Vec3<R>{a.x * inverse.x, a.y * inverse.y, a.z * inverse.z};
  };
  place.du = per_metre(place.du);
  place.dv = per_metre(place.dv);
  return scale_place(mapping, place);
}

/// The direction of a cube lookup at `point`. `scale` is its change per metre in each component.
template <class R>
HWY_INLINE Vec3<R> cube_direction(const TextureMapping& mapping, const Vec3<R>& point,
                                  Vec3<R>& scale) {
  const Vec3<R> inverse = broadcast<R>(mapping.inverse_size.data());
  const Vec3<R> cube = broadcast<R>(mapping.cube_scale.data());
  scale = {inverse.x * cube.x, inverse.y * cube.y, inverse.z * cube.z};
  Vec3<R> d{point.x * scale.x, point.y * scale.y, point.z * scale.z};
  if (mapping.layout != TextureLayout::cube_capsule)
    return d;
  const R z = point.z * inverse.z;
  const MaskOf<R> cap = abs(z) > R(1.0F);
  const R side = copysign(R(1.0F), z);
  const R on_cap = side + (z - side) * (inverse.x / inverse.z);
  d.z = select(cap, on_cap, z) * cube.z;
  scale.z = select(cap, inverse.x * cube.z, scale.z);
  return d;
}

/// How the hit point moves on the surface's tangent plane if the ray's direction changes by `step`
/// (per pixel). `t` is the ray's parameter at the hit, `d` its direction.
template <class R>
HWY_INLINE Vec3<R> surface_step(const Vec3<R>& normal, const Vec3<R>& d, R t, const Vec3<R>& step) {
  const R along = dot(normal, d);
  const R safe = select(abs(along) > R(1e-6F), along, copysign(R(1e-6F), along));
  return (step - d * (dot(normal, step) / safe)) * t;
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
