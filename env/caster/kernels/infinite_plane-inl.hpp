// The far end of MuJoCo's world, for every number type R of lanes-inl.hpp: where the sky hides
// distant objects, and the haze that hides the edge of an infinite plane.
//
// MuJoCo moves an infinite plane along with the camera in steps of its texture and draws a square
// of it. The geom's position is already correct, because mjv_updateScene moves it. The sky is a
// cylinder around the camera, upright in the world, whose radius and half height are .7 times the
// far plane's distance. The haze is a cone between the plane and the horizon, transparent at both
// ends and white in between. Only the first plane that is infinite in both directions has haze, and
// only if there is a sky.
#if defined(TROUPE_ENV_CASTER_INFINITE_PLANE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_INFINITE_PLANE_INL_HPP_
#undef TROUPE_ENV_CASTER_INFINITE_PLANE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_INFINITE_PLANE_INL_HPP_
#endif

#include <cmath>

#include "env/caster/kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

inline constexpr float kSkyFarPlanes = 0.7F; // distance of the sky / distance of the far plane

/// The parameter at which a ray from the camera in world direction `d` meets the sky.
template <class R>
HWY_INLINE R sky_distance(const Vec3<R>& d, float far) {
  const R across = sqrt(d.x * d.x + d.y * d.y);
  return R(kSkyFarPlanes * far) / max(max(across, abs(d.z)), R(1e-20F));
}

/// The numbers of the haze that do not depend on the ray.
struct Haze {
  float distance = 0;  // from the camera to the cone's outer end, metres
  float elevation = 0; // height of the camera above the plane / `distance`
  float slope = 0;     // map.haze: the part of the radius that the cone covers
  float ridge = 0;     // height where it is thickest; 0 is the plane, 1 the horizon
};

/// `above`: the camera's height above the plane, metres. Below the plane there is no haze (distance
/// 0).
HWY_INLINE Haze make_haze(float far, float above, float map_haze) {
  Haze haze;
  if (!(above > 0) || !(map_haze > 0))
    return haze;
  haze.distance = kSkyFarPlanes * far;
  haze.elevation = above / haze.distance;
  haze.slope = map_haze;
  const float up = std::atan2(1.0F, map_haze);
  haze.ridge = std::sqrt(.5F) * map_haze * std::sin(up) / std::sin(2.3561945F - up);
  return haze;
}

template <class R>
struct HazeSeen {
  R opacity; // 0 to 1
  R t;       // the ray's parameter at the haze
};

/// The haze in front of an object (or the sky) at parameter t of a ray. `d`: the ray's direction in
/// the plane's frame, whose z axis is the normal.
template <class R>
HWY_INLINE HazeSeen<R> haze_before(const Haze& haze, const Vec3<R>& d, R t) {
  const R across = sqrt(d.x * d.x + d.y * d.y);
  // At height h, the cone's distance is 1 - slope * (1 - h). At parameter s, the ray's height
  // is h = 1 + s * d.z / elevation.
  const R down = d.z * R(1.0F / haze.elevation);
  const R s = R(1.0F) / max(across - down * R(haze.slope), R(1e-20F));
  const R h = R(1.0F) + s * down;
  const R ridge(haze.ridge);
  const R opacity = select(h < ridge, h / ridge, (R(1.0F) - h) / (R(1.0F) - ridge));
  const MaskOf<R> seen = (d.z < R(0.0F)) & (h >= R(0.0F)) & (s * R(haze.distance) <= t);
  return {keep_if(seen, clamp(opacity, R(0.0F), R(1.0F))), s * R(haze.distance)};
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
