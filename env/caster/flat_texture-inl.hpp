// Flat textures sampled level by level: the lanes of a packet are on one or two levels of detail,
// so that a level's sizes are numbers, not gathered ones. The same bits as sample_flat().
#if defined(TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_
#undef TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_
#endif

#include "env/caster/texture-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// Bilinear on one level: the weight of the second of two colours, 0 to 255.
template <class R>
HWY_INLINE R sample_weight(const Texture& texture, R u, R v, int level) {
  const auto l = static_cast<std::size_t>(level);
  const TexelPlace<R> x = place_texel(u, R(texture.width_texels[l]));
  const TexelPlace<R> y = place_texel(v, R(texture.height_texels[l]));
  const IntOf<R> zero(0);
  const IntOf<R> left = select(x.first < zero, IntOf<R>(texture.width[l] - 1), x.first);
  const IntOf<R> top = select(y.first < zero, IntOf<R>(texture.height[l] - 1), y.first);
  const IntOf<R> four =
      gather(texture.texels.data() + texture.offset[l], top * IntOf<R>(texture.width[l]) + left);
  const IntOf<R> low(0xff);
  const R a = to_real(four & low);
  const R c = to_real(shift_right<16>(four) & low);
  const R upper = a + (to_real(shift_right<8>(four) & low) - a) * x.weight;
  const R lower = c + (to_real(shift_right<24>(four) & low) - c) * x.weight;
  return upper + (lower - upper) * y.weight;
}

/// Trilinear, for the lanes of `wanted`; a texture of two colours.
template <class R>
HWY_INLINE Vec3<R> sample_two_colours(const Texture& texture, R u, R v, R level_of_detail,
                                      MaskOf<R> wanted) {
  const int last = texture.levels - 1;
  const R level = clamp(level_of_detail, R(0.0F), R(static_cast<float>(last)));
  const R whole = floor(level);
  const R between = level - whole;
  alignas(64) float levels[kLanes<R>];
  store(whole, levels);
  R weight(0.0F);
  std::uint32_t left = bits(wanted);
  while (left != 0) {
    const int near = static_cast<int>(levels[std::countr_zero(left)]);
    const MaskOf<R> lanes = wanted & (whole == R(static_cast<float>(near)));
    R here = sample_weight(texture, u, v, near);
    if (any(lanes & (between > R(0.0F)))) {
      const R far = sample_weight(texture, u, v, near < last ? near + 1 : last);
      here = here + (far - here) * between;
    }
    weight = select(lanes, here, weight);
    left &= ~bits(lanes);
  }
  const R part = weight * R(1.0F / 255.0F);
  const auto mix = [&](std::size_t c) HWY_ATTR {
    const R first(texture.colours[0][c]);
    return first + (R(texture.colours[1][c]) - first) * part;
  };
  return {mix(0), mix(1), mix(2)};
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
