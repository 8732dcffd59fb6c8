// Texture lookups, once for every number type R of lanes-inl.hpp: filtering as OpenGL's
// GL_LINEAR_MIPMAP_LINEAR without anisotropy, and where on a texture a point of a shape lies.
//
// Texture coordinates: 1 is the whole texture, v grows with the rows. A level of detail is log2 of
// texels per pixel, in the direction where they are most. Lookups are safe for any numbers, NaN
// included; what they give in lanes that nobody asked for is some colour.
#if defined(TROUPE_ENV_CASTER_TEXTURE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_TEXTURE_INL_HPP_
#undef TROUPE_ENV_CASTER_TEXTURE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_TEXTURE_INL_HPP_
#endif

#include "env/caster/lanes-inl.hpp"
#include "env/caster/textures.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <class R>
struct Texel {
  Vec3<R> colour; // 0 to 1
  R alpha;
};

// ---- flat textures

/// Level of detail from the change of u and v per pixel, to the right (x) and downward (y).
template <class R>
HWY_INLINE R texture_level(const TextureView& texture, R du_dx, R dv_dx, R du_dy, R dv_dy) {
  const R along_u = max(abs(du_dx), abs(du_dy)) * R(texture.width_texels[0]);
  const R along_v = max(abs(dv_dx), abs(dv_dy)) * R(texture.height_texels[0]);
  return log2(max(max(along_u, along_v), R(1e-20F)));
}

/// Red, green, blue and alpha (0 to 255) of four texels, mixed by the weights of the second column
/// and row.
template <class R>
HWY_INLINE Texel<R> mix_texels(IntOf<R> a, IntOf<R> b, IntOf<R> c, IntOf<R> d, R column, R row) {
  const IntOf<R> low(0xff);
  const auto mix = [&](IntOf<R> p, IntOf<R> q, IntOf<R> r, IntOf<R> s) {
    const R p_ = to_real(p & low);
    const R r_ = to_real(r & low);
    const R top = p_ + (to_real(q & low) - p_) * column;
    const R bottom = r_ + (to_real(s & low) - r_) * column;
    return top + (bottom - top) * row;
  };
  Texel<R> texel;
  texel.colour.x = mix(a, b, c, d);
  texel.colour.y = mix(shift_right<8>(a), shift_right<8>(b), shift_right<8>(c), shift_right<8>(d));
  texel.colour.z =
      mix(shift_right<16>(a), shift_right<16>(b), shift_right<16>(c), shift_right<16>(d));
  texel.alpha = mix(shift_right<24>(a), shift_right<24>(b), shift_right<24>(c), shift_right<24>(d));
  return texel;
}

/// A coordinate's first texel (-1 to size - 1) and how far it is to the second, repeating.
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

/// Bilinear, on the given level of each lane: 0 to 255; the weight of the second colour, in all
/// four numbers, when there are two.
template <class R>
HWY_INLINE Texel<R> sample_level(const TextureView& texture, R u, R v, IntOf<R> level) {
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
    Texel<R> texel;
    const IntOf<R> low(0xff);
    const R a = to_real(four & low);
    const R c = to_real(shift_right<16>(four) & low);
    const R upper = a + (to_real(shift_right<8>(four) & low) - a) * x.weight;
    const R lower = c + (to_real(shift_right<24>(four) & low) - c) * x.weight;
    texel.alpha = upper + (lower - upper) * y.weight;
    texel.colour = {texel.alpha, texel.alpha, texel.alpha};
    return texel;
  }
  const IntOf<R> right = select(x.first + one == columns, zero, x.first + one);
  const IntOf<R> bottom = select(y.first + one == rows, zero, y.first + one);
  const IntOf<R> row1 = offset + bottom * columns;
  return mix_texels<R>(gather(texels, row0 + left), gather(texels, row0 + right),
                       gather(texels, row1 + left), gather(texels, row1 + right), x.weight,
                       y.weight);
}

template <class R>
HWY_INLINE Texel<R> mix_levels(const Texel<R>& near, const Texel<R>& far, R weight) {
  return {near.colour + (far.colour - near.colour) * weight,
          near.alpha + (far.alpha - near.alpha) * weight};
}

/// From 0 to 255 to 0 to 1, and from a weight to a colour.
template <class R>
HWY_INLINE Texel<R> finish_texel(const TextureView& texture, const Texel<R>& texel) {
  const R unit(1.0F / 255.0F);
  if (!texture.two_colours)
    return {texel.colour * unit, texel.alpha * unit};
  const R weight = texel.alpha * unit;
  const auto mix = [&](std::size_t c) {
    const R first(texture.colours[0][c]);
    return first + (R(texture.colours[1][c]) - first) * weight;
  };
  return {{mix(0), mix(1), mix(2)}, mix(3)};
}

/// Trilinear; repeats in both directions.
template <class R>
HWY_INLINE Texel<R> sample_flat(const TextureView& texture, R u, R v, R level_of_detail) {
  const R last(static_cast<float>(texture.levels - 1));
  const R level = clamp(level_of_detail, R(0.0F), last);
  const R whole = floor(level);
  const IntOf<R> near = to_integer(whole);
  const R weight = level - whole;
  const Texel<R> a = sample_level(texture, u, v, near);
  if (none(weight > R(0.0F)))
    return finish_texel(texture, a);
  const IntOf<R> far = min(near + IntOf<R>(1), IntOf<R>(texture.levels - 1));
  return finish_texel(texture, mix_levels(a, sample_level(texture, u, v, far), weight));
}

// ---- cube textures

/// A direction's face (0 to 5) and its coordinates there, before they are divided by `major`.
template <class R>
struct CubePlace {
  IntOf<R> face;
  R u;
  R v;
  R major;
};

/// Components of `a` chosen as by the face of `of`: (across, down, along the face's axis).
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

/// Level of detail of a lookup in direction `d` that changes by dd_dx and dd_dy per pixel.
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
HWY_INLINE Texel<R> sample_cube_level(const TextureView& texture, IntOf<R> face, R u, R v,
                                      IntOf<R> level) {
  const R size = gather(texture.width_texels.data(), level);
  const IntOf<R> pitch = gather(texture.width.data(), level) + IntOf<R>(2);
  const IntOf<R> base = gather(texture.offset.data(), level) + face * pitch * pitch;
  // u and v are in [-1, 1], so that places are in [-1/2, size - 1/2]; NaN becomes -1/2.
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

/// Trilinear, filtered across the cube's edges. `d` need not have length 1.
template <class R>
HWY_INLINE Texel<R> sample_cube(const TextureView& texture, const Vec3<R>& d, R level_of_detail) {
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
  const Texel<R> a = sample_cube_level(texture, face, u, v, near);
  if (none(weight > R(0.0F)))
    return finish_texel(texture, a);
  const IntOf<R> far = min(near + IntOf<R>(1), IntOf<R>(texture.levels - 1));
  return finish_texel(texture, mix_levels(a, sample_cube_level(texture, face, u, v, far), weight));
}

/// The sky in a direction of the world that changes by dd_dx and dd_dy per pixel: 0 to 1.
template <class R>
HWY_INLINE Vec3<R> sample_sky(const TextureView& sky, const Vec3<R>& d, const Vec3<R>& dd_dx,
                              const Vec3<R>& dd_dy) {
  const auto turned = [](const Vec3<R>& a) { return Vec3<R>{a.x, a.z, -a.y}; };
  const R level = cube_level(sky, turned(d), turned(dd_dx), turned(dd_dy));
  return sample_cube(sky, turned(d), level).colour;
}

// ---- where a texture lies

/// Texture coordinates and how they change per metre in the shape's frame.
template <class R>
struct TexturePlace {
  R u;
  R v;
  Vec3<R> du;
  Vec3<R> dv;
  Vec3<R> flat{}; // of meshes and skins: the triangle's unit normal, whatever it is lit by
};

/// Angle of (x, y) from the x axis in turns, [0, 1); to 1e-5. 0 for (0, 0).
template <class R>
HWY_INLINE R turns(R y, R x) {
  const R ax = abs(x);
  const R ay = abs(y);
  const R ratio = min(ax, ay) / max(max(ax, ay), R(1e-30F));
  const R s = ratio * ratio; // arctangent in [0, 1], odd polynomial
  const R series =
      ratio
      * (R(0.999866F)
         + s * (R(-0.3302995F) + s * (R(0.180141F) + s * (R(-0.085133F) + s * R(0.0208351F)))));
  const R half_pi(1.57079633F);
  const R first = select(ay > ax, half_pi - series, series);
  const R second = select(x < R(0.0F), R(3.14159265F) - first, first);
  const R part = second * R(0.159154943F);
  const R whole = select(y < R(0.0F), R(1.0F) - part, part);
  return select(whole >= R(1.0F), R(0.0F), whole);
}

/// Longitude in turns at unit coordinates p, its change per unit.
template <class R>
HWY_INLINE void place_longitude(const Vec3<R>& p, R& u, Vec3<R>& du) {
  u = turns(p.y, p.x);
  const R scale = R(0.159154943F) / max(p.x * p.x + p.y * p.y, R(1e-8F));
  du = {-p.y * scale, p.x * scale, R(0.0F)};
}

/// Latitude in turns, [-1/4, 1/4], at a point of the unit sphere, its change per unit.
template <class R>
HWY_INLINE void place_latitude(const Vec3<R>& p, R& turns_up, Vec3<R>& change) {
  const R across = sqrt(p.x * p.x + p.y * p.y);
  const R part = turns(abs(p.z), across);
  turns_up = copysign(part, p.z);
  const R unit = R(0.159154943F) / max(across * across + p.z * p.z, R(1e-8F));
  const R scale = -p.z * unit / max(across, R(1e-4F));
  change = {p.x * scale, p.y * scale, across * unit};
}

template <class R>
HWY_INLINE TexturePlace<R> place_on_box(const Vec3<R>& p, const Vec3<R>& normal) {
  const R half(0.5F);
  const R zero(0.0F);
  const R nx = abs(normal.x);
  const R ny = abs(normal.y);
  const R nz = abs(normal.z);
  const MaskOf<R> top = (nz >= nx) & (nz >= ny);
  const MaskOf<R> x_face = andnot(nx >= ny, top);
  const R u = select(x_face, p.y, p.x);
  const R v = select(top, p.y, p.z);
  return {(u + R(1.0F)) * half,
          (R(1.0F) - v) * half,
          {select(x_face, zero, half), select(x_face, half, zero), zero},
          {zero, select(top, -half, zero), select(top, zero, -half)}};
}

template <class R>
HWY_INLINE TexturePlace<R> place_on_sphere(const Vec3<R>& p) {
  TexturePlace<R> place;
  place_longitude(p, place.u, place.du);
  R up;
  Vec3<R> change;
  place_latitude(p, up, change);
  place.v = R(0.5F) - up * R(2.0F);
  place.dv = change * R(-2.0F);
  return place;
}

/// p: x and y by the radius, z by the half length of the tube; `ratio`: that half length by the
/// radius.
template <class R>
HWY_INLINE TexturePlace<R> place_on_capsule(const Vec3<R>& p, R ratio) {
  const R zero(0.0F);
  const R one(1.0F);
  const R half(0.5F);
  TexturePlace<R> place;
  place_longitude(p, place.u, place.du);
  const MaskOf<R> cap = abs(p.z) > one;
  const Vec3<R> round{p.x, p.y, (p.z - copysign(one, p.z)) * ratio};
  R up;
  Vec3<R> change;
  place_latitude(round, up, change);
  const R on_cap = select(p.z > zero, one - up * R(4.0F), up * R(-4.0F));
  place.v = select(cap, on_cap, (one - p.z) * half);
  place.dv = {select(cap, change.x * R(-4.0F), zero), select(cap, change.y * R(-4.0F), zero),
              select(cap, change.z * R(-4.0F) * ratio, -half)};
  return place;
}

template <class R>
HWY_INLINE TexturePlace<R> place_on_cylinder(const Vec3<R>& p, const Vec3<R>& normal) {
  const R zero(0.0F);
  const R half(0.5F);
  TexturePlace<R> place;
  place_longitude(p, place.u, place.du);
  const MaskOf<R> cap = square(normal.z) > square(normal.x) + square(normal.y);
  place.u = select(cap, (p.x + R(1.0F)) * half, place.u);
  place.v = select(cap, (p.y + R(1.0F)) * half, (R(1.0F) - p.z) * half);
  place.du = {select(cap, half, place.du.x), select(cap, zero, place.du.y), zero};
  place.dv = {zero, select(cap, half, zero), select(cap, zero, -half)};
  return place;
}

/// Scales given coordinates (a mesh's own) or unit ones as the material asks.
template <class R>
HWY_INLINE TexturePlace<R> scale_place(const TextureMapping& mapping,
                                       const TexturePlace<R>& place) {
  const R u(mapping.scale[0]);
  const R v(mapping.scale[1]);
  return {place.u * u, place.v * v, place.du * u, place.dv * v};
}

/// Coordinates at `point` (metres, shape's frame) of a surface that faces `normal`. For layouts
/// none, given and both cubes there is nothing to compute: use scale_place() and cube_direction().
template <class R>
HWY_INLINE TexturePlace<R> place_texture(const TextureMapping& mapping, const Vec3<R>& point,
                                         const Vec3<R>& normal) {
  const R zero(0.0F);
  if (mapping.layout == TextureLayout::planar) {
    const R u(0.5F * mapping.scale[0]);
    const R v(-0.5F * mapping.scale[1]);
    return {point.x * u - R(0.5F), point.y * v - R(0.5F), {u, zero, zero}, {zero, v, zero}};
  }
  const Vec3<R> inverse = broadcast<R>(mapping.inverse_size.data());
  const Vec3<R> p{point.x * inverse.x, point.y * inverse.y, point.z * inverse.z};
  TexturePlace<R> place{zero, zero, {zero, zero, zero}, {zero, zero, zero}};
  switch (mapping.layout) {
  case TextureLayout::box:
    place = place_on_box(p, normal);
    break;
  case TextureLayout::sphere:
    place = place_on_sphere(p);
    break;
  case TextureLayout::capsule:
    place = place_on_capsule(p, R(mapping.inverse_size[0] / mapping.inverse_size[2]));
    break;
  case TextureLayout::cylinder:
    place = place_on_cylinder(p, normal);
    break;
  default:
    break;
  }
  const auto per_metre = [&](const Vec3<R>& a) {
    return Vec3<R>{a.x * inverse.x, a.y * inverse.y, a.z * inverse.z};
  };
  place.du = per_metre(place.du);
  place.dv = per_metre(place.dv);
  return scale_place(mapping, place);
}

/// Direction of a cube lookup at `point`; `scale` is its change per metre, component by component.
template <class R>
HWY_INLINE Vec3<R> cube_direction(const TextureMapping& mapping, const Vec3<R>& point,
                                  Vec3<R>& scale) {
  const Vec3<R> inverse = broadcast<R>(mapping.inverse_size.data());
  const Vec3<R> cube = broadcast<R>(mapping.cube_scale.data());
  scale = {inverse.x * cube.x, inverse.y * cube.y, inverse.z * cube.z};
  Vec3<R> d{point.x * scale.x, point.y * scale.y, point.z * scale.z};
  if (mapping.layout != TextureLayout::cube_capsule)
    return d;
  const R z = point.z * inverse.z;
  const MaskOf<R> cap = abs(z) > R(1.0F);
  const R side = copysign(R(1.0F), z);
  const R on_cap = side + (z - side) * (inverse.x / inverse.z);
  d.z = select(cap, on_cap, z) * cube.z;
  scale.z = select(cap, inverse.x * cube.z, scale.z);
  return d;
}

/// How the point hit moves on the surface's tangent plane when the ray's direction changes by
/// `step` (per pixel): `t` is the ray's parameter there, `d` its direction.
template <class R>
HWY_INLINE Vec3<R> surface_step(const Vec3<R>& normal, const Vec3<R>& d, R t, const Vec3<R>& step) {
  const R along = dot(normal, d);
  const R safe = select(abs(along) > R(1e-6F), along, copysign(R(1e-6F), along));
  return (step - d * (dot(normal, step) / safe)) * t;
}

/// The texture of a shape at `point`, facing `normal`, of which the neighbouring pixels are dp_dx
/// and dp_dy away (metres; surface_step()). `given` is read only for layout `given`.
template <class R>
HWY_INLINE Texel<R> sample_texture(const TextureView& texture, const TextureMapping& mapping,
                                   const Vec3<R>& point, const Vec3<R>& normal,
                                   const Vec3<R>& dp_dx, const Vec3<R>& dp_dy,
                                   const TexturePlace<R>& given) {
  if (mapping.layout == TextureLayout::none || texture.levels == 0)
    return {{R(1.0F), R(1.0F), R(1.0F)}, R(1.0F)};
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
