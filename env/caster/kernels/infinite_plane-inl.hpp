// The far end of MuJoCo's world, once for every number type R of lanes-inl.hpp: where the sky
// stands before what is behind it, how far an infinite plane really goes, and the haze that hides
// its edge.
//
// MuJoCo moves an infinite plane along with the camera in steps of its texture (mjv_updateScene
// does, so that the geom's position is already right) and draws a square of it. The sky is a
// cylinder around the camera, upright in the world, of radius and half height .7 far planes. Haze,
// only over the first plane that is infinite both ways and only where there is a sky, is a cone
// between plane and horizon: clear, white, clear again.
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

inline constexpr float kSkyFarPlanes = 0.7F; // the sky's distance, of the far plane's
inline constexpr float kPlaneLines = 200;    // of the grid of an infinite plane, each way

/// Half of the square (metres) that an infinite plane is drawn as, along an axis where its texture
/// repeats `repeat` times (per 2 metres; 0: there is no texture). `far`: of the camera, metres.
HWY_INLINE float infinite_plane_half(float far, float repeat) {
  const float period = repeat > 0 ? 2 / repeat : 2.1F * far / (kPlaneLines - 2);
  return (2.1F * far + 2 * period) * .5F;
}

/// Parameter at which a ray in direction `d` (world) from the camera meets the sky.
template <class R>
HWY_INLINE R sky_distance(const Vec3<R>& d, float far) {
  const R across = sqrt(d.x * d.x + d.y * d.y);
  return R(kSkyFarPlanes * far) / max(max(across, abs(d.z)), R(1e-20F));
}

/// Numbers of the haze that do not depend on the ray.
struct Haze {
  float distance = 0;  // metres from the camera to the cone's outer end
  float elevation = 0; // of the camera above the plane, in those
  float slope = 0;     // map.haze: how much of the radius the cone takes
  float ridge = 0;     // its height (0 at the plane, 1 at the horizon) where it is thickest
};

/// `above`: metres from the plane up to the camera; below it there is no haze (distance 0).
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
  R t;       // of the ray, where the haze is
};

/// The haze on a ray in direction `d` of the plane's frame (z is its normal) before something at
/// parameter t (the sky included).
template <class R>
HWY_INLINE HazeSeen<R> haze_before(const Haze& haze, const Vec3<R>& d, R t) {
  const R across = sqrt(d.x * d.x + d.y * d.y);
  // The cone at height h is 1 - slope * (1 - h) away; h = 1 + s * d.z / elevation at parameter s.
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
