// Intersects rays with triangles: packets of rays with one tree of boxes (bvh.hpp), for every
// number type R of lanes-inl.hpp. Rays, points and normals are in the mesh's frame. A ray's
// parameter t is in lengths of its direction, which need not be a unit vector.
#if defined(TROUPE_ENV_CASTER_MESH_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_MESH_INL_HPP_
#undef TROUPE_ENV_CASTER_MESH_INL_HPP_
#else
#define TROUPE_ENV_CASTER_MESH_INL_HPP_
#endif

#include "env/caster/kernels/lanes-inl.hpp"
#include "env/caster/mesh.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// How far a triangle extends beyond its edges, relative to its size, so that no ray slips between
/// two triangles.
inline constexpr float kEdgeReach = 1e-5F;

/// The rays of a packet, prepared for tests with boxes.
template <class R>
struct BoxRays {
  Vec3<R> o;
  Vec3<R> d;
  Vec3<R> inverse; // 1 / d, finite
};

template <class R>
HWY_INLINE BoxRays<R> make_box_rays(const Vec3<R>& o, const Vec3<R>& d) {
  const auto inverse = [](R a) {
    const R least(1e-20F);
    return R(1.0F) / select(abs(a) < least, copysign(least, a), a);
  };
  return {o, d, {inverse(d.x), inverse(d.y), inverse(d.z)}};
}

/// The lanes that are inside the box at some t from t_near to t_far.
template <class R>
HWY_INLINE MaskOf<R> meets_box(const BoxRays<R>& rays, const Vec3<R>& low, const Vec3<R>& high,
                               R t_near, R t_far) {
  R from = t_near;
  R to = t_far;
  const auto cut = [&](R l, R h, R o, R inverse) {
    const R a = (l - o) * inverse;
    const R b = (h - o) * inverse;
    from = max(min(a, b), from);
    to = min(max(a, b), to);
  };
  cut(low.x, high.x, rays.o.x, rays.inverse.x);
  cut(low.y, high.y, rays.o.y, rays.inverse.y);
  cut(low.z, high.z, rays.o.z, rays.inverse.z);
  // A margin: boxes may be flat, and rounding must not lose the triangles in them.
  return from <= to + abs(to) * R(1e-6F);
}

/// Where rays meet the plane of the triangle a, a + e1, a + e2.
template <class R>
struct TriangleMeeting {
  MaskOf<R> inside; // inside the triangle, from a side that counts, and not parallel to it
  R t;
  R first; // weights of the second and third corner
  R second;
};

/// Whether a triangle faces away from `eye`, the common origin of all rays (null if they have
/// several). meet_triangle<false>() would find no hit at t > 0 either, but costs sixteen times as
/// much.
HWY_INLINE bool turned_away(const float* eye, const float* pa, const float* pb, const float* pc) {
  if (eye == nullptr)
    return false;
  const Vec3<float> e1{pb[0] - pa[0], pb[1] - pa[1], pb[2] - pa[2]};
  const Vec3<float> e2{pc[0] - pa[0], pc[1] - pa[1], pc[2] - pa[2]};
  const Vec3<float> n = cross(e1, e2);
  const Vec3<float> c{pa[0] - eye[0], pa[1] - eye[1], pa[2] - eye[2]};
  return -dot(c, n) <= 0;
}

/// Without kBothSides, only the front counts, where the corners are in counter-clockwise order.
template <bool kBothSides, class R>
HWY_INLINE TriangleMeeting<R> meet_triangle(const Vec3<R>& o, const Vec3<R>& d, const float* pa,
                                            const float* pb, const float* pc) {
  const Vec3<float> e1{pb[0] - pa[0], pb[1] - pa[1], pb[2] - pa[2]};
  const Vec3<float> e2{pc[0] - pa[0], pc[1] - pa[1], pc[2] - pa[2]};
  const Vec3<float> normal{e1.y * e2.z - e1.z * e2.y, e1.z * e2.x - e1.x * e2.z,
                           e1.x * e2.y - e1.y * e2.x};
  const auto lanes = [](const Vec3<float>& a) { return Vec3<R>{R(a.x), R(a.y), R(a.z)}; };
  const Vec3<R> n = lanes(normal);
  const Vec3<R> c{R(pa[0]) - o.x, R(pa[1]) - o.y, R(pa[2]) - o.z};
  const Vec3<R> r = cross(d, c);
  const R against = -dot(n, d); // > 0 if the ray comes from the front
  R first = dot(r, lanes(e2));
  R second = -dot(r, lanes(e1));
  R along = -dot(c, n);
  R size = against;
  if constexpr (kBothSides) {
    const R sign = copysign(R(1.0F), against);
    first = first * sign;
    second = second * sign;
    along = along * sign;
    size = abs(against);
  }
  const R reach = size * R(-kEdgeReach);
  TriangleMeeting<R> meeting;
  meeting.inside =
      (size > R(0.0F)) & (first >= reach) & (second >= reach) & (first + second <= size - reach);
  const R inverse = R(1.0F) / select(size > R(0.0F), size, R(1.0F));
  meeting.t = along * inverse;
  meeting.first = first * inverse;
  meeting.second = second * inverse;
  return meeting;
}

/// The nearest hit with a triangle.
template <class R>
struct MeshHit {
  R t;               // in: the limit; out: of the hit, if there is one
  IntOf<R> triangle; // in the tree's order; -1 if there is no hit
  R first;           // weights of its second and third corner
  R second;
};

template <class R>
HWY_INLINE MeshHit<R> no_mesh_hit(R t_far) {
  return {t_far, IntOf<R>(-1), R(0.0F), R(0.0F)};
}

/// Visits the leaves that a lane of `mask` may hit between t_near and far(), roughly from near to
/// far. `visit(first, count)` returns whether to continue.
template <class R, class Far, class Visit>
HWY_INLINE void walk_bvh(const MeshView& mesh, const BoxRays<R>& rays, R t_near, MaskOf<R> mask,
                         const Far& far, const Visit& visit) {
  if (mesh.nodes == nullptr || none(mask))
    return;
  // The packet's first ray determines the order of the two children, by their centres.
  const std::uint32_t lanes = bits(mask);
  float along[3];
  if constexpr (std::is_same_v<R, float>) {
    along[0] = rays.d.x, along[1] = rays.d.y, along[2] = rays.d.z;
  } else {
    const int lane = lowest_bit(lanes);
    alignas(64) float lines[3][kLanes<R>];
    store(rays.d.x, lines[0]);
    store(rays.d.y, lines[1]);
    store(rays.d.z, lines[2]);
    for (int k = 0; k < 3; ++k)
      along[k] = lines[k][lane];
  }
  std::int32_t stack[kBvhDepth + 2];
  int size = 0;
  stack[size++] = 0;
  while (size > 0) {
    const BvhNode& node = mesh.nodes[stack[--size]];
    const MaskOf<R> meets =
        mask & meets_box(rays, broadcast<R>(node.low), broadcast<R>(node.high), t_near, far());
    if (none(meets))
      continue;
    if (node.count > 0) {
      if (!visit(node.first, node.count))
        return;
      continue;
    }
    const BvhNode& a = mesh.nodes[node.first];
    const BvhNode& b = mesh.nodes[node.first + 1];
    float towards_b = 0;
    for (int k = 0; k < 3; ++k)
      towards_b += along[k] * (b.low[k] + b.high[k] - a.low[k] - a.high[k]);
    const int near = towards_b >= 0 ? 0 : 1;
    stack[size++] = node.first + 1 - near;
    stack[size++] = node.first + near;
  }
}

/// Finds the nearest front face of each lane of `mask` with t_near < t < hit.t, where t_near is at
/// least 0. Other lanes do not change. With kBothSides, back faces also count. `eye`: o, if it is
/// the same for all lanes and only front faces count; otherwise null.
template <bool kBothSides = false, class R>
HWY_INLINE void intersect_mesh(const MeshView& mesh, const Vec3<R>& o, const Vec3<R>& d, R t_near,
                               MaskOf<R> mask, MeshHit<R>& hit, const float* eye = nullptr) {
  const BoxRays<R> rays = make_box_rays(o, d);
  walk_bvh(
      mesh, rays, t_near, mask, [&]() HWY_ATTR { return hit.t; },
      [&](std::int32_t from, std::int32_t count) HWY_ATTR {
        for (std::int32_t i = from; i < from + count; ++i) {
          const std::int32_t* corner = mesh.triangles[i].corner;
          const float* a = mesh.vertices + 4 * corner[0];
          const float* b = mesh.vertices + 4 * corner[1];
          const float* c = mesh.vertices + 4 * corner[2];
          if (turned_away(eye, a, b, c))
            continue;
          const TriangleMeeting<R> meeting = meet_triangle<kBothSides>(o, d, a, b, c);
          const MaskOf<R> closer =
              mask & meeting.inside & (meeting.t > t_near) & (meeting.t < hit.t);
          if (none(closer))
            continue;
          hit.t = select(closer, meeting.t, hit.t);
          hit.triangle = select(closer, IntOf<R>(i), hit.triangle);
          hit.first = select(closer, meeting.first, hit.first);
          hit.second = select(closer, meeting.second, hit.second);
        }
        return true;
      });
}

/// Returns the lanes of `mask` whose ray hits any triangle, from either side, with t_near < t <
/// t_far.
template <class R>
HWY_INLINE MaskOf<R> mesh_between(const MeshView& mesh, const Vec3<R>& o, const Vec3<R>& d,
                                  R t_near, R t_far, MaskOf<R> mask) {
  const BoxRays<R> rays = make_box_rays(o, d);
  MaskOf<R> met = no_lanes<R>();
  walk_bvh(
      mesh, rays, t_near, mask, [&]() HWY_ATTR { return select(met, R(-1e30F), t_far); },
      [&](std::int32_t from, std::int32_t count) HWY_ATTR {
        for (std::int32_t i = from; i < from + count; ++i) {
          const std::int32_t* corner = mesh.triangles[i].corner;
          const TriangleMeeting<R> meeting =
              meet_triangle<true>(o, d, mesh.vertices + 4 * corner[0],
                                  mesh.vertices + 4 * corner[1], mesh.vertices + 4 * corner[2]);
          met = met | (mask & meeting.inside & (meeting.t > t_near) & (meeting.t < t_far));
        }
        return any(andnot(mask, met));
      });
  return met;
}

/// The properties of a hit that shading needs.
template <class R>
struct MeshSurface {
  // The interpolated unit normals of the corners, not normalized again. OpenGL lights the corners
  // and interpolates the colours, so a light's factor is the product of the interpolated normal and
  // the light's direction.
  Vec3<R> normal;
  Vec3<R> flat; // unit normal of the triangle
  R u;          // texture coordinates; 0 if the mesh has none
  R v;
  Vec3<R> du; // their change per metre
  Vec3<R> dv;
};

/// Lanes without a hit contain arbitrary numbers.
template <class R>
HWY_INLINE MeshSurface<R> mesh_surface(const MeshView& mesh, const MeshHit<R>& hit) {
  const IntOf<R> triangle = max(hit.triangle, IntOf<R>(0));
  const IntOf<R> at = shift_left<2>(triangle);
  const auto* corners = reinterpret_cast<const std::int32_t*>(mesh.triangles);
  const auto fetch = [](const float* from, IntOf<R> number) {
    const IntOf<R> place = shift_left<2>(number);
    return Vec3<R>{gather(from, place), gather(from, place + IntOf<R>(1)),
                   gather(from, place + IntOf<R>(2))};
  };
  const auto corner = [&](const std::int32_t* table, int k) {
    return gather(table, at + IntOf<R>(k));
  };
  const Vec3<R> a = fetch(mesh.vertices, corner(corners, 0));
  const Vec3<R> e1 = fetch(mesh.vertices, corner(corners, 1)) - a;
  const Vec3<R> e2 = fetch(mesh.vertices, corner(corners, 2)) - a;
  const R third = R(1.0F) - hit.first - hit.second;
  MeshSurface<R> surface;
  surface.normal = fetch(mesh.normals, corner(mesh.normal_corners, 0)) * third
                   + fetch(mesh.normals, corner(mesh.normal_corners, 1)) * hit.first
                   + fetch(mesh.normals, corner(mesh.normal_corners, 2)) * hit.second;
  const Vec3<R> across = cross(e1, e2);
  surface.flat = normalized(across);
  const R zero(0.0F);
  surface.u = surface.v = zero;
  surface.du = surface.dv = {zero, zero, zero};
  if (mesh.coordinates == nullptr)
    return surface;
  const auto coordinates = [&](int k, R& u, R& v) {
    const IntOf<R> place = shift_left<1>(corner(mesh.coordinate_corners, k));
    u = gather(mesh.coordinates, place);
    v = gather(mesh.coordinates, place + IntOf<R>(1));
  };
  R u0, v0, u1, v1, u2, v2;
  coordinates(0, u0, v0);
  coordinates(1, u1, v1);
  coordinates(2, u2, v2);
  surface.u = u0 * third + u1 * hit.first + u2 * hit.second;
  surface.v = v0 * third + v1 * hit.first + v2 * hit.second;
  // The gradients of the two weights on the triangle's plane.
  const R inverse = R(1.0F) / max(dot(across, across), R(1e-30F));
  const Vec3<R> first = cross(e2, across) * inverse;
  const Vec3<R> second = cross(across, e1) * inverse;
  surface.du = first * (u1 - u0) + second * (u2 - u0);
  surface.dv = first * (v1 - v0) + second * (v2 - v0);
  return surface;
}

/// Finds the hit of a ray again from its t: the nearest triangle within a relative tolerance of
/// 1e-5.
template <class R>
HWY_INLINE MeshHit<R> mesh_hit_at(const MeshView& mesh, const Vec3<R>& o, const Vec3<R>& d, R t,
                                  MaskOf<R> mask, const float* eye = nullptr) {
  const R slack = abs(t) * R(1e-5F);
  MeshHit<R> hit = no_mesh_hit(t + slack);
  intersect_mesh(mesh, o, d, t - slack, mask, hit, eye);
  return hit;
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
