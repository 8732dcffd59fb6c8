// Samples flat textures one level at a time. The lanes of a packet need only one or two levels of
// detail, so the size of a level is a scalar instead of a gathered vector. The results are equal to
// those of sample_flat() bit for bit.
#if defined(TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_
#undef TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_FLAT_TEXTURE_INL_HPP_
#endif

#include "env/caster/kernels/texture-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// For a repeating coordinate, returns the first of the two adjacent texels and sets the weight of
/// the second one.
template <class R>
HWY_INLINE R first_texel(R coordinate, R size, R& weight) {
  const R place = (coordinate - floor(coordinate)) * size - R(0.5F);
  const R low = clamp(floor(place), R(-1.0F), size - R(1.0F));
  weight = clamp(place - low, R(0.0F), R(1.0F));
  return select(low < R(0.0F), size - R(1.0F), low);
}

/// Bilinear lookup in one level: the weight of the second colour, 0 to 255.
template <class R>
HWY_INLINE R sample_weight(const TextureView& texture, R u, R v, int level) {
  const auto l = static_cast<std::size_t>(level);
  R x_weight, y_weight;
  const R left = first_texel(u, R(texture.width_texels[l]), x_weight);
  const R top = first_texel(v, R(texture.height_texels[l]), y_weight);
  const IntOf<R> index = small_integer(top) * IntOf<R>(texture.width[l]) + small_integer(left);
  const IntOf<R> four = gather(texture.first_texel + texture.offset[l], index);
  const IntOf<R> low(0xff);
  const R a = to_real(four & low);
  const R c = to_real(shift_right<16>(four) & low);
  const R upper = a + (to_real(shift_right<8>(four) & low) - a) * x_weight;
  const R lower = c + (to_real(shift_right<24>(four) & low) - c) * x_weight;
  return upper + (lower - upper) * y_weight;
}

/// Trilinear lookup in a two-colour texture, for the lanes of `wanted`.
template <class R>
HWY_INLINE Vec3<R> sample_two_colours(const TextureView& texture, R u, R v, R level_of_detail,
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
    const int near = static_cast<int>(levels[lowest_bit(left)]);
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
