// Points, normals and textures of the surfaces that rays meet.
#if defined(TROUPE_ENV_CASTER_SURFACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#undef TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#endif

#include "env/caster/flat_texture-inl.hpp"
#include "env/caster/light-inl.hpp"
#include "env/caster/texture-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// Normals, and texture coordinates where the mesh has some, of the triangles at parameter t.
template <class R>
HWY_NOINLINE Vec3<R> triangle_normal(const Shape& shape, const Ray<R>& ray, R t, MaskOf<R> wanted,
                                     TexturePlace<R>& given) {
  if (shape.kind == ShapeKind::height_field)
    return field_normal(*shape.field, point_at(ray, t));
  const MeshHit<R> hit = mesh_hit_at(shape.mesh, ray.o, ray.d, t, wanted);
  const MeshSurface<R> surface = mesh_surface(shape.mesh, hit);
  given = {surface.u, surface.v, surface.du, surface.dv, surface.flat};
  return surface.normal;
}

/// What light falls on, for the lanes of `wanted`; `given` is set for meshes and skins alone.
template <class R>
HWY_INLINE Surface<R> surface_at(const Shape& shape, const Ray<R>& ray, R t,
                                 const Packet<R>& packet, MaskOf<R> wanted,
                                 TexturePlace<R>& given) {
  Surface<R> surface;
  surface.point = point_at(ray, t);
  surface.normal = shape.kind > ShapeKind::box ? triangle_normal(shape, ray, t, wanted, given)
                                               : normal_at(shape, surface.point);
  surface.view = -ray.d;
  if (shape.kind == ShapeKind::ellipsoid) {
    const Vec3<R> size = broadcast<R>(shape.size.data());
    surface.point = {surface.point.x * size.x, surface.point.y * size.y, surface.point.z * size.z};
    surface.view = {surface.view.x * size.x, surface.view.y * size.y, surface.view.z * size.z};
  }
  surface.view = surface.view * packet.inverse_length;
  return surface;
}

/// A finite plane's texture of two colours, where the steps to the neighbouring pixels are simple.
template <bool kOrthographic, class R>
HWY_INLINE Vec3<R> plane_texture(const Frame& frame, const Shape& shape, const Surface<R>& surface,
                                 const RayFrame& rays, R t, const Vec3<R>& direction,
                                 MaskOf<R> wanted) {
  const Texture& texture = *shape.texture;
  const TextureMapping& mapping = shape.mapping;
  const R half(.5F);
  const R u = (surface.point.x * R(mapping.inverse_size[0]) + R(1.0F)) * half * R(mapping.scale[0]);
  const R v = (R(1.0F) - surface.point.y * R(mapping.inverse_size[1])) * half * R(mapping.scale[1]);
  // A step s of the ray's direction moves the point by (s - d s.z / d.z) t.
  const R per_u(.5F * mapping.inverse_size[0] * mapping.scale[0] * texture.width_texels[0]);
  const R per_v(.5F * mapping.inverse_size[1] * mapping.scale[1] * texture.height_texels[0]);
  const R inverse = R(1.0F) / not_zero(direction.z);
  const R across = direction.x * inverse;
  const R along = direction.y * inverse;
  const float* right = rays.right.data();
  const float* up = rays.up.data();
  const R du = max(abs(R(right[0]) - across * R(right[2])) * R(frame.camera.du),
                   abs(R(up[0]) - across * R(up[2])) * R(frame.camera.dv));
  const R dv = max(abs(R(right[1]) - along * R(right[2])) * R(frame.camera.du),
                   abs(R(up[1]) - along * R(up[2])) * R(frame.camera.dv));
  const R reach = kOrthographic ? R(1.0F) : t;
  const R texels = max(du * per_u, dv * per_v) * reach;
  return sample_two_colours(texture, u, v, log2(max(texels, R(1e-20F))), wanted);
}

/// The colour times the shape's texture; `rays` is the camera in the shape's frame.
template <bool kOrthographic, class R>
HWY_INLINE Vec3<R> apply_texture(const Frame& frame, const Shape& shape, const Surface<R>& surface,
                                 const RayFrame& rays, R t, const Packet<R>& packet,
                                 const TexturePlace<R>& given, MaskOf<R> wanted,
                                 const Vec3<R>& colour) {
  const Vec3<R> direction = -surface.view * (R(1.0F) / packet.inverse_length);
  if (shape.kind == ShapeKind::plane && shape.texture->two_colours
      && shape.mapping.layout == TextureLayout::box) {
    const Vec3<R> texel =
        plane_texture<kOrthographic>(frame, shape, surface, rays, t, direction, wanted);
    return {colour.x * texel.x, colour.y * texel.y, colour.z * texel.z};
  }
  const R du(frame.camera.du);
  Vec3<R> right = broadcast<R>(rays.right.data()) * du;
  Vec3<R> down = broadcast<R>(rays.up.data()) * -R(frame.camera.dv);
  if (shape.kind == ShapeKind::ellipsoid) {
    const Vec3<R> size = broadcast<R>(shape.size.data());
    right = {right.x * size.x, right.y * size.y, right.z * size.z};
    down = {down.x * size.x, down.y * size.y, down.z * size.z};
  }
  const R reach = kOrthographic ? R(1.0F) : t;
  const bool triangles = shape.kind == ShapeKind::mesh || shape.kind == ShapeKind::skin;
  const Vec3<R> flat = triangles ? given.flat : surface.normal;
  const Texel<R> texel =
      sample_texture(*shape.texture, shape.mapping, surface.point, surface.normal,
                     surface_step(flat, direction, reach, right),
                     surface_step(flat, direction, reach, down), given);
  return {colour.x * texel.colour.x, colour.y * texel.colour.y, colour.z * texel.colour.z};
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
