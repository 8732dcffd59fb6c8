// Points, normals and textures of the surfaces that rays hit.
#if defined(TROUPE_ENV_CASTER_SURFACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#undef TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_SURFACE_INL_HPP_
#endif

#include "env/caster/kernels/flat_texture-inl.hpp"
#include "env/caster/kernels/light-inl.hpp"
#include "env/caster/kernels/texture-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// The normals of the triangles at parameter t, and their texture coordinates if the mesh has any.
template <class R>
HWY_NOINLINE Vec3<R> triangle_normal(const Shape& shape, const Ray<R>& ray, const float* eye, R t,
                                     MaskOf<R> wanted, TexturePlace<R>& given) {
  if (shape.kind == ShapeKind::height_field)
    return field_normal(*shape.field, point_at(ray, t));
  const MeshHit<R> hit = mesh_hit_at(shape.mesh, ray.o, ray.d, t, wanted, eye);
  const MeshSurface<R> surface = mesh_surface(shape.mesh, hit);
  given = {surface.u, surface.v, surface.du, surface.dv, surface.flat};
  return surface.normal;
}

/// The surface at parameter t, for the lanes of `wanted`. Sets `given` only for meshes and skins.
/// `eye`: common_origin() of the rays.
template <class R>
HWY_INLINE Surface<R> surface_at(const Shape& shape, const Ray<R>& ray, const float* eye, R t,
                                 const Packet<R>& packet, MaskOf<R> wanted,
                                 TexturePlace<R>& given) {
  Surface<R> surface;
  surface.point = point_at(ray, t);
  surface.normal = shape.kind > ShapeKind::box ? triangle_normal(shape, ray, eye, t, wanted, given)
                                               : normal_at(shape, surface.point);
  surface.direction = ray.d;
  if (shape.kind == ShapeKind::ellipsoid) {
    const Vec3<R> size = broadcast<R>(shape.size.data());
    surface.point = {surface.point.x * size.x, surface.point.y * size.y, surface.point.z * size.z};
    surface.direction = {ray.d.x * size.x, ray.d.y * size.y, ray.d.z * size.z};
  }
  surface.view = surface.direction * -packet.inverse_length;
  return surface;
}

/// Samples the two-colour texture of a finite plane, for which the step to a neighbouring pixel is
/// simple: a step s of the ray's direction d moves the point by (s - d s.z / d.z) t.
template <bool kOrthographic, class R>
HWY_INLINE Vec3<R> sample_plane(const Shape& shape, const Surface<R>& surface, R t,
                                MaskOf<R> wanted) {
  const PlaneTexture& at = shape.plane_texture;
  const R u = surface.point.x * R(at.u_scale) + R(at.u_offset);
  const R v = surface.point.y * R(at.v_scale) + R(at.v_offset);
  const R inverse = R(1.0F) / not_zero(surface.direction.z);
  const R across = surface.direction.x * inverse;
  const R along = surface.direction.y * inverse;
  const R du = max(abs(R(at.u_right[0]) - across * R(at.u_right[1])),
                   abs(R(at.u_up[0]) - across * R(at.u_up[1])));
  const R dv = max(abs(R(at.v_right[0]) - along * R(at.v_right[1])),
                   abs(R(at.v_up[0]) - along * R(at.v_up[1])));
  const R reach = kOrthographic ? R(1.0F) : t;
  const R texels = max(max(du, dv) * reach, R(1e-20F));
  return sample_two_colours(*shape.texture, u, v, log2(texels), wanted);
}

/// Multiplies the colour by the shape's texture. `rays` is the camera in the shape's frame.
template <bool kOrthographic, class R, class Scene>
HWY_INLINE Vec3<R> apply_texture(const Scene& frame, const Shape& shape, const Surface<R>& surface,
                                 const RayFrame& rays, R t, const TexturePlace<R>& given,
                                 MaskOf<R> wanted, const Vec3<R>& colour) {
  if (shape.plane_textured && &rays == &shape.ray) {
    const Vec3<R> texel = sample_plane<kOrthographic>(shape, surface, t, wanted);
    return {colour.x * texel.x, colour.y * texel.y, colour.z * texel.z};
  }
  const Vec3<R>& direction = surface.direction;
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
  const Vec3<R> texel = sample_texture(*shape.texture, shape.mapping, surface.point, surface.normal,
                                       surface_step(flat, direction, reach, right),
                                       surface_step(flat, direction, reach, down), given);
  return {colour.x * texel.x, colour.y * texel.y, colour.z * texel.z};
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
