// Points, normals and textures of the surfaces that rays meet.
#if defined(TROUPE_ENV_CASTER_SURFACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#undef TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#endif

#include "env/caster/light-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <class R>
HWY_INLINE Surface<R> surface_at(const Shape& shape, const Ray<R>& ray, R t,
                                 const Packet<R>& packet) {
  Surface<R> surface;
  surface.point = point_at(ray, t);
  surface.normal = normal_at(shape, surface.point);
  surface.view = -ray.d;
  if (shape.kind == ShapeKind::ellipsoid) {
    const Vec3<R> size = broadcast<R>(shape.size.data());
    surface.point = {surface.point.x * size.x, surface.point.y * size.y, surface.point.z * size.z};
    surface.view = {surface.view.x * size.x, surface.view.y * size.y, surface.view.z * size.z};
  }
  surface.view = surface.view * packet.inverse_length;
  return surface;
}

template <bool kOrthographic, class R>
HWY_INLINE Vec3<R> apply_texture(const Frame& frame, const Shape& shape, const Surface<R>& surface,
                                 const Ray<R>& ray, R t, const Packet<R>& packet,
                                 const Vec3<R>& colour) {
  (void)frame;
  (void)ray;
  (void)t;
  (void)packet;
  (void)shape;
  (void)surface;
  return colour;
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
