// Texture lookups, for every number type R of lanes-inl.hpp, filtered as with OpenGL's
// GL_LINEAR_MIPMAP_LINEAR without anisotropy.
//
// Texture coordinates span the texture from 0 to 1; v increases with the rows. The level of detail
// is log2 of the texels per pixel, in the direction that has most of them. Lookups are safe for any
// numbers, including NaN. Lanes that are not requested get an arbitrary colour.
#if defined(TROUPE_ENV_CASTER_TEXTURE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_TEXTURE_INL_HPP_
#undef TROUPE_ENV_CASTER_TEXTURE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_TEXTURE_INL_HPP_
#endif

#include "env/caster/kernels/lanes-inl.hpp"
#include "env/caster/kernels/texture_place-inl.hpp"
#include "env/caster/textures.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

// ---- flat textures

/// The level of detail from the changes of u and v per pixel, to the right (x) and downwards (y).
template <class R>
HWY_INLINE R texture_level(const TextureView& texture, R du_dx, R dv_dx, R du_dy, R dv_dy) {
  const R along_u = max(abs(du_dx), abs(du_dy)) * R(texture.width_texels[0]);
  const R along_v = max(abs(dv_dx), abs(dv_dy)) * R(texture.height_texels[0]);
  return log2(max(max(along_u, along_v), R(1e-20F)));
}

/// Interpolates the red, green and blue (0 to 255) of four texels with the weights of the second
/// column and row.
template <class R>
HWY_INLINE Vec3<R> mix_texels(IntOf<R> a, IntOf<R> b, IntOf<R> c, IntOf<R> d, R column, R row) {
  const IntOf<R> low(0xff);
  const auto mix = [&](IntOf<R> p, IntOf<R> q, IntOf<R> r, IntOf<R> s) {
    const R p_ = to_real(p & low);
    const R r_ = to_real(r & low);
    const R top = p_ + (to_real(q & low) - p_) * column;
    const R bottom = r_ + (to_real(s & low) - r_) * column;
    return top + (bottom - top) * row;
  };
  return {mix(a, b, c, d),
          mix(shift_right<8>(a), shift_right<8>(b), shift_right<8>(c), shift_right<8>(d)),
          mix(shift_right<16>(a), shift_right<16>(b), shift_right<16>(c), shift_right<16>(d))};
}

/// The first texel of a repeating coordinate (-1 to size - 1) and the fraction of the way to the
/// second one.
template <class R>
struct TexelPlace {
  IntOf<R> first;
  R weight;
};

template <class R>
HWY_INLINE TexelPlace<R> place_texel(R coordinate, R size) {
  const R place = (coordinate - floor(coordinate)) * size - R(0.5F);
  const R low = clamp(floor(place), R(-1.0F), size - R(1.0F));
  return {to_integer(low), clamp(place - low, R(0.0F), R(1.0F))};
}

/// Bilinear lookup in each lane's level: colours from 0 to 255, or for a two-colour texture the
/// weight of the second colour in all three components.
template <class R>
HWY_INLINE Vec3<R> sample_level(const TextureView& texture, R u, R v, IntOf<R> level) {
  const R width = gather(texture.width_texels.data(), level);
  const R height = gather(texture.height_texels.data(), level);
  const IntOf<R> columns = gather(texture.width.data(), level);
  const IntOf<R> rows = gather(texture.height.data(), level);
  const IntOf<R> offset = gather(texture.offset.data(), level);
  const TexelPlace<R> x = place_texel(u, width);
  const TexelPlace<R> y = place_texel(v, height);
  const IntOf<R> zero(0);
  const IntOf<R> one(1);
  const IntOf<R> left = select(x.first < zero, columns - one, x.first);
  const IntOf<R> top = select(y.first < zero, rows - one, y.first);
  const IntOf<R> row0 = offset + top * columns;
  const std::int32_t* texels = texture.first_texel;
  if (texture.two_colours) {
    const IntOf<R> four = gather(texels, row0 + left);
    const IntOf<R> low(0xff);
    const R a = to_real(four & low);
    const R c = to_real(shift_right<16>(four) & low);
    const R upper = a + (to_real(shift_right<8>(four) & low) - a) * x.weight;
    const R lower = c + (to_real(shift_right<24>(four) & low) - c) * x.weight;
    const R weight = upper + (lower - upper) * y.weight;
    return {weight, weight, weight};
  }
  const IntOf<R> right = select(x.first + one == columns, zero, x.first + one);
  const IntOf<R> bottom = select(y.first + one == rows, zero, y.first + one);
  const IntOf<R> row1 = offset + bottom * columns;
  return mix_texels<R>(gather(texels, row0 + left), gather(texels, row0 + right),
                       gather(texels, row1 + left), gather(texels, row1 + right), x.weight,
                       y.weight);
}

template <class R>
HWY_INLINE Vec3<R> mix_levels(const Vec3<R>& near, const Vec3<R>& far, R weight) {
  return near + (far - near) * weight;
}

/// Scales colours from 0 to 255 to 0 to 1, and converts weights to colours.
template <class R>
HWY_INLINE Vec3<R> finish_texel(const TextureView& texture, const Vec3<R>& texel) {
  const R unit(1.0F / 255.0F);
  if (!texture.two_colours)
    return texel * unit;
  const R weight = texel.x * unit;
  const auto mix = [&](std::size_t c) {
    const R first(texture.colours[0][c]);
    return first + (R(texture.colours[1][c]) - first) * weight;
  };
  return {mix(0), mix(1), mix(2)};
}

/// Trilinear lookup; the texture repeats in both directions.
template <class R>
HWY_INLINE Vec3<R> sample_flat(const TextureView& texture, R u, R v, R level_of_detail) {
  const R last(static_cast<float>(texture.levels - 1));
  const R level = clamp(level_of_detail, R(0.0F), last);
  const R whole = floor(level);
  const IntOf<R> near = to_integer(whole);
  const R weight = level - whole;
  const Vec3<R> a = sample_level(texture, u, v, near);
  if (none(weight > R(0.0F)))
    return finish_texel(texture, a);
  const IntOf<R> far = min(near + IntOf<R>(1), IntOf<R>(texture.levels - 1));
  return finish_texel(texture, mix_levels(a, sample_level(texture, u, v, far), weight));
}

// ---- cube textures

/// The face (0 to 5) of a direction and its coordinates there, not yet divided by `major`.
template <class R>
struct CubePlace {
  IntOf<R> face;
  R u;
  R v;
  R major;
};

/// The components of `a` relative to the face of `of`: across, down, along the face's axis.
template <class R>
HWY_INLINE Vec3<R> cube_components(const Vec3<R>& of, const Vec3<R>& a) {
  const R x = abs(of.x);
  const R y = abs(of.y);
  const R z = abs(of.z);
  const R zero(0.0F);
  const MaskOf<R> along_x = (x >= y) & (x >= z);
  const MaskOf<R> along_y = andnot(y >= z, along_x);
  const R across_x = select(of.x > zero, -a.z, a.z);
  const R across_z = select(of.z > zero, a.x, -a.x);
  const R down_y = select(of.y > zero, a.z, -a.z);
  const R major_x = select(of.x > zero, a.x, -a.x);
  const R major_y = select(of.y > zero, a.y, -a.y);
  const R major_z = select(of.z > zero, a.z, -a.z);
  return {select(along_x, across_x, select(along_y, a.x, across_z)), select(along_y, down_y, -a.y),
          select(along_x, major_x, select(along_y, major_y, major_z))};
}

template <class R>
HWY_INLINE IntOf<R> cube_face(const Vec3<R>& d) {
  const R x = abs(d.x);
  const R y = abs(d.y);
  const R z = abs(d.z);
  const R zero(0.0F);
  const auto side = [&](R component, std::int32_t positive) {
    return select(component > zero, IntOf<R>(positive), IntOf<R>(positive + 1));
  };
  const MaskOf<R> along_x = (x >= y) & (x >= z);
  return select(along_x, side(d.x, 0), select(y >= z, side(d.y, 2), side(d.z, 4)));
}

/// The level of detail of a lookup in direction `d`, which changes by dd_dx and dd_dy per pixel.
template <class R>
HWY_INLINE R cube_level(const TextureView& texture, const Vec3<R>& d, const Vec3<R>& dd_dx,
                        const Vec3<R>& dd_dy) {
  const Vec3<R> at = cube_components(d, d);
  const R inverse = R(1.0F) / max(at.z, R(1e-20F));
  const R u = at.x * inverse;
  const R v = at.y * inverse;
  const auto change = [&](const Vec3<R>& step) {
    const Vec3<R> by = cube_components(d, step);
    return max(abs(by.x - u * by.z), abs(by.y - v * by.z));
  };
  const R texels = max(change(dd_dx), change(dd_dy)) * inverse * R(0.5F * texture.width_texels[0]);
  return log2(max(texels, R(1e-20F)));
}

template <class R>
HWY_INLINE Vec3<R> sample_cube_level(const TextureView& texture, IntOf<R> face, R u, R v,
                                     IntOf<R> level) {
  const R size = gather(texture.width_texels.data(), level);
  const IntOf<R> pitch = gather(texture.width.data(), level) + IntOf<R>(2);
  const IntOf<R> base = gather(texture.offset.data(), level) + face * pitch * pitch;
  // u and v are in [-1, 1], so the results are in [-1/2, size - 1/2]. NaN becomes -1/2.
  const R x = clamp((u + R(1.0F)) * R(0.5F) * size - R(0.5F), R(-0.5F), size - R(0.5F));
  const R y = clamp((v + R(1.0F)) * R(0.5F) * size - R(0.5F), R(-0.5F), size - R(0.5F));
  const R column = floor(x);
  const R row = floor(y);
  const IntOf<R> one(1);
  const IntOf<R> at = base + (to_integer(row) + one) * pitch + to_integer(column) + one;
  const std::int32_t* texels = texture.first_texel;
  return mix_texels<R>(gather(texels, at), gather(texels, at + one), gather(texels, at + pitch),
                       gather(texels, at + pitch + one), x - column, y - row);
}

/// Trilinear lookup, filtered across the cube's edges. `d` need not be a unit vector.
template <class R>
HWY_INLINE Vec3<R> sample_cube(const TextureView& texture, const Vec3<R>& d, R level_of_detail) {
  const Vec3<R> at = cube_components(d, d);
  const IntOf<R> face = cube_face(d);
  const R inverse = R(1.0F) / max(at.z, R(1e-20F));
  const R u = at.x * inverse;
  const R v = at.y * inverse;
  const R last(static_cast<float>(texture.levels - 1));
  const R level = clamp(level_of_detail, R(0.0F), last);
  const R whole = floor(level);
  const IntOf<R> near = to_integer(whole);
  const R weight = level - whole;
  const Vec3<R> a = sample_cube_level(texture, face, u, v, near);
  if (none(weight > R(0.0F)))
    return finish_texel(texture, a);
  const IntOf<R> far = min(near + IntOf<R>(1), IntOf<R>(texture.levels - 1));
  return finish_texel(texture, mix_levels(a, sample_cube_level(texture, face, u, v, far), weight));
}

/// The sky in world direction `d`, which changes by dd_dx and dd_dy per pixel: 0 to 1.
template <class R>
HWY_INLINE Vec3<R> sample_sky(const TextureView& sky, const Vec3<R>& d, const Vec3<R>& dd_dx,
                              const Vec3<R>& dd_dy) {
  const auto turned = [](const Vec3<R>& a) { return Vec3<R>{a.x, a.z, -a.y}; };
  const R level = cube_level(sky, turned(d), turned(dd_dx), turned(dd_dy));
  return sample_cube(sky, turned(d), level);
}

// ---- flat and cube textures

/// The texture of a shape at `point` with normal `normal`. The neighbouring pixels are dp_dx and
/// dp_dy away (metres; see surface_step()). `given` is used only for layout `given`.
template <class R>
HWY_INLINE Vec3<R> sample_texture(const TextureView& texture, const TextureMapping& mapping,
                                  const Vec3<R>& point, const Vec3<R>& normal, const Vec3<R>& dp_dx,
                                  const Vec3<R>& dp_dy, const TexturePlace<R>& given) {
  if (mapping.layout == TextureLayout::none || texture.levels == 0)
    return {R(1.0F), R(1.0F), R(1.0F)};
  if (texture.cube) {
    Vec3<R> scale;
    const Vec3<R> d = cube_direction(mapping, point, scale);
    const auto scaled = [&](const Vec3<R>& a) {
      return Vec3<R>{a.x * scale.x, a.y * scale.y, a.z * scale.z};
    };
    return sample_cube(texture, d, cube_level(texture, d, scaled(dp_dx), scaled(dp_dy)));
  }
  const TexturePlace<R> place = mapping.layout == TextureLayout::given
                                    ? scale_place(mapping, given)
                                    : place_texture(mapping, point, normal);
  const R level = texture_level(texture, dot(place.du, dp_dx), dot(place.dv, dp_dx),
                                dot(place.du, dp_dy), dot(place.dv, dp_dy));
  return sample_flat(texture, place.u, place.v, level);
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
