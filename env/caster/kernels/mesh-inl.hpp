// Rays and triangles: packets of rays against one tree of boxes (bvh.hpp), once for every number
// type R of lanes-inl.hpp. Rays, points and normals are in the mesh's frame; skins' is the world.
// A ray's parameter t counts lengths of its direction, which need not be 1.
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

/// How much a triangle reaches beyond its edges, so that no ray slips between two: of its size.
inline constexpr float kEdgeReach = 1e-5F;

/// The rays of a packet, ready for boxes.
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

/// Lanes that are inside the box at some t from t_near to t_far.
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
  // Boxes may be flat, and rounding must not lose triangles in them.
  return from <= to + abs(to) * R(1e-6F);
}

/// Where rays meet the plane of a triangle a, a + e1, a + e2.
template <class R>
struct TriangleMeeting {
  MaskOf<R> inside; // and front or back as asked, and not parallel
  R t;
  R first; // weights of the second and third corner
  R second;
};

/// Whether a triangle turns its back on the point that all rays come from (null: they come from
/// several): meet_triangle<false>() would find them to meet it at no t > 0, sixteen times as dear.
HWY_INLINE bool turned_away(const float* eye, const float* pa, const float* pb, const float* pc) {
  if (eye == nullptr)
    return false;
  const Vec3<float> e1{pb[0] - pa[0], pb[1] - pa[1], pb[2] - pa[2]};
  const Vec3<float> e2{pc[0] - pa[0], pc[1] - pa[1], pc[2] - pa[2]};
  const Vec3<float> n = cross(e1, e2);
  const Vec3<float> c{pa[0] - eye[0], pa[1] - eye[1], pa[2] - eye[2]};
  return -dot(c, n) <= 0;
}

/// With kBothSides the back counts, too; otherwise only the side from which the corners turn left.
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
  const R against = -dot(n, d); // > 0: the ray comes from the front
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

/// The nearest triangle that is seen from its front.
template <class R>
struct MeshHit {
  R t;               // before: the farthest that counts; after: of the hit, where there is one
  IntOf<R> triangle; // in the tree's order; -1: none
  R first;           // weights of its second and third corner
  R second;
};

template <class R>
HWY_INLINE MeshHit<R> no_mesh_hit(R t_far) {
  return {t_far, IntOf<R>(-1), R(0.0F), R(0.0F)};
}

/// Visits leaves that may hold something for a lane of `mask` between t_near and far(), roughly
/// nearest first; `visit(first, count)` returns whether to go on.
template <class R, class Far, class Visit>
HWY_INLINE void walk_bvh(const MeshView& mesh, const BoxRays<R>& rays, R t_near, MaskOf<R> mask,
                         const Far& far, const Visit& visit) {
  if (mesh.nodes == nullptr || none(mask))
    return;
  // Children in the order in which the packet's first ray passes their middles.
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

/// Nearest front face of each lane of `mask` with t_near < t < hit.t; t_near is at least 0. Other
/// lanes stay. With kBothSides backs count, too. `eye`: o, where it is the same for all lanes and
/// fronts alone count; null otherwise.
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

/// Lanes of `mask` whose ray meets any triangle, from either side, with t_near < t < t_far.
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

/// What shading needs of a hit.
template <class R>
struct MeshSurface {
  // The corners' unit normals mixed and not made unit again: OpenGL lights corners and mixes
  // colours, and a light's share is the mixed normal's product with its direction.
  Vec3<R> normal;
  Vec3<R> flat; // unit, of the triangle
  R u;          // texture coordinates, 0 when the mesh has none
  R v;
  Vec3<R> du; // their change per metre
  Vec3<R> dv;
};

/// Lanes without a hit get some numbers.
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
  // Gradients of the two weights on the triangle's plane.
  const R inverse = R(1.0F) / max(dot(across, across), R(1e-30F));
  const Vec3<R> first = cross(e2, across) * inverse;
  const Vec3<R> second = cross(across, e1) * inverse;
  surface.du = first * (u1 - u0) + second * (u2 - u0);
  surface.dv = first * (v1 - v0) + second * (v2 - v0);
  return surface;
}

/// Finds the hit again whose t is known (of the same ray): the first triangle that the ray meets
/// within a hundred-thousandth of t.
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
