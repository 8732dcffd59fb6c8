// Lighting of surfaces in the shape's frame: OpenGL's fixed-function model, as MuJoCo sets it up.
#if defined(TROUPE_ENV_CASTER_LIGHT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_LIGHT_INL_HPP_
#undef TROUPE_ENV_CASTER_LIGHT_INL_HPP_
#else
#define TROUPE_ENV_CASTER_LIGHT_INL_HPP_
#endif

#include "env/caster/frame.hpp"
#include "env/caster/kernels/rays-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// A lit point of a surface.
template <class R>
struct Surface {
  Vec3<R> point, normal, view; // view: unit vector to the eye
  Vec3<R> direction;           // the ray's direction times its parameter
};

/// The contribution of one light at a point, without the colours: the factors of its ambient,
/// diffuse and specular light, and whether the surface faces the light.
template <class R>
struct Brightness {
  R ambient, diffuse, specular;
  MaskOf<R> faces;
};

template <class R>
HWY_INLINE R whole_power(R base, int exponent) {
  R result(1.0F);
  for (R factor = base; exponent > 0; exponent >>= 1, factor = factor * factor)
    if ((exponent & 1) != 0)
      result = result * factor;
  return result;
}

/// N.a. With kFlat, the normal is the shape's z axis.
template <bool kFlat, class R>
HWY_INLINE R along_normal(const Surface<R>& surface, const Vec3<R>& a) {
  if constexpr (kFlat)
    return a.z;
  else
    return dot(surface.normal, a);
}

/// (N.H)^(2 half_exponent), where H is halfway between the light and the eye. Needs no square root.
template <bool kFlat, class R>
HWY_INLINE R shine(const Shape& shape, const Surface<R>& surface, const Vec3<R>& toward, R facing) {
  const Vec3<R> halfway = toward + surface.view;
  const R along = facing + along_normal<kFlat>(surface, surface.view);
  const R squared = max(dot(halfway, halfway), R(1e-12F));
  const MaskOf<R> bright = (along > R(0.0F)) & (along * along > squared * R(shape.faintest));
  if (none(bright))
    return R(0.0F);
  R q = min(keep_if(bright, along * along / squared), R(1.0F));
  if (shape.squarings >= 0) {
    for (int i = 0; i < shape.squarings; ++i)
      q = q * q;
    return q;
  }
  return keep_if(bright, power(q, R(shape.half_exponent)));
}

template <class R>
HWY_INLINE R cone(const Light& light, const LocalLight& local, const Vec3<R>& toward) {
  const R cosine = -dot(toward, broadcast<R>(local.axis.data()));
  const MaskOf<R> inside = cosine >= R(light.cos_cutoff);
  if (none(inside))
    return R(0.0F);
  const R positive = keep_if(inside, max(cosine, R(0.0F)));
  return keep_if(inside, light.whole_exponent >= 0 ? whole_power(positive, light.whole_exponent)
                                                   : power(positive, R(light.exponent)));
}

template <bool kFlat, class R>
HWY_INLINE Brightness<R> brightness(const Shape& shape, const Light& light, const LocalLight& local,
                                    const Surface<R>& surface) {
  Vec3<R> toward = broadcast<R>(local.toward.data());
  R reach(1.0F);
  if (!light.directional) {
    toward = toward - surface.point;
    const R squared = max(dot(toward, toward), R(1e-20F));
    const R inverse = R(1.0F) / sqrt(squared);
    toward = toward * inverse;
    if (!light.unattenuated) {
      const R distance = squared * inverse;
      // Coefficients of 0 give white, as OpenGL's division by 0 does.
      reach = R(1.0F)
              / max(R(light.attenuation[0]) + R(light.attenuation[1]) * distance
                        + R(light.attenuation[2]) * squared,
                    R(1e-12F));
    }
    if (light.spot)
      reach = reach * cone(light, local, toward);
  }
  const R facing = along_normal<kFlat>(surface, toward);
  Brightness<R> result{reach, reach * max(facing, R(0.0F)), R(0.0F),
                       MaskOf<R>((facing > R(0.0F)) & (reach > R(0.0F)))};
  if (local.shines && any(result.faces))
    result.specular = keep_if(result.faces, reach * shine<kFlat>(shape, surface, toward, facing));
  return result;
}

/// Adds the light's colours. With kScaled, which is for mirror images, everything except the
/// specular part is multiplied by `scale`.
template <bool kScaled, class R>
HWY_INLINE void add_light(Vec3<R>& sum, const LocalLight& local, const Brightness<R>& b, R scale) {
  const R diffuse = kScaled ? b.diffuse * scale : b.diffuse;
  sum.x += R(local.diffuse[0]) * diffuse;
  sum.y += R(local.diffuse[1]) * diffuse;
  sum.z += R(local.diffuse[2]) * diffuse;
  if (local.has_ambient) {
    const R ambient = kScaled ? b.ambient * scale : b.ambient;
    sum.x += R(local.ambient[0]) * ambient;
    sum.y += R(local.ambient[1]) * ambient;
    sum.z += R(local.ambient[2]) * ambient;
  }
  if (local.shines) {
    sum.x += R(local.specular[0]) * b.specular;
    sum.y += R(local.specular[1]) * b.specular;
    sum.z += R(local.specular[2]) * b.specular;
  }
}

template <class R>
HWY_INLINE Vec3<R> at_most_one(const Vec3<R>& colour) {
  const R one(1.0F);
  return {min(colour.x, one), min(colour.y, one), min(colour.z, one)};
}

// ---- planes are lit at the vertices of their mesh

/// For each x, finds the line (as in PlaneAxis::line()) to its left, and the fraction of the way to
/// the next line.
template <class R>
HWY_INLINE void find_cell(const PlaneAxis& axis, R x, IntOf<R>& line, R& part) {
  const R start = R(-axis.size + axis.pad);
  const R cells(static_cast<float>(axis.cells));
  const R inverse_step(axis.inverse_step);
  const R cell = clamp(floor((x - start) * inverse_step), R(-1.0F), cells);
  const MaskOf<R> before = cell < R(0.0F);
  const MaskOf<R> outside = before | (cell >= cells);
  const R left = select(before, R(-axis.size), start + cell * R(axis.step));
  const R inverse_width = select(outside, R(axis.inverse_pad), inverse_step);
  part = clamp((x - left) * inverse_width, R(0.0F), R(1.0F));
  line = small_integer(cell + R(1.0F));
}

/// The brightness of a spot light on a plane, interpolated from the table of its vertices. Each
/// quad is two triangles, divided by the diagonal from the bottom right to the top left.
template <class R, class Table>
HWY_INLINE Brightness<R> table_brightness(const Shape& shape, const Table& table,
                                          const LocalLight& local, const Vec3<R>& point) {
  const R zero(0.0F);
  const MaskOf<R> near = (abs(point.x - R(table.middle[0])) <= R(table.half[0]))
                         & (abs(point.y - R(table.middle[1])) <= R(table.half[1]));
  if (none(near))
    return {zero, zero, zero, near};
  IntOf<R> column, row;
  R x, y;
  find_cell(shape.axes[0], point.x, column, x);
  find_cell(shape.axes[1], point.y, row, y);
  column = column - IntOf<R>(table.first[0]);
  row = row - IntOf<R>(table.first[1]);
  const IntOf<R> columns(table.count[0]);
  const IntOf<R> none_left(-1);
  const MaskOf<R> inside = (column > none_left) & (column < columns - IntOf<R>(1))
                           & (row > none_left) & (row < IntOf<R>(table.count[1] - 1));
  Brightness<R> result{zero, zero, zero, inside};
  if (none(inside))
    return result;
  const MaskOf<R> upper = x + y > R(1.0F);
  const R part_x = select(upper, R(1.0F) - x, x);
  const R part_y = select(upper, R(1.0F) - y, y);
  const IntOf<R> base = select(inside, row * columns + column, IntOf<R>(0));
  // Near the camera, all lanes of a packet are often in the same cell.
  alignas(64) std::int32_t cells[kLanes<R>];
  store(base, cells);
  const std::int32_t cell = cells[lowest_bit(bits(inside))];
  const bool one_cell = none(andnot(inside, base == IntOf<R>(cell)));
  // The vertex at the right angle, and its neighbours along x and y.
  const IntOf<R> corner = select(upper, base + columns + IntOf<R>(1), base);
  const IntOf<R> along_x = select(upper, base + columns, base + IntOf<R>(1));
  const IntOf<R> along_y = select(upper, base + IntOf<R>(1), base + columns);
  const auto interpolate = [&](const auto& values) HWY_ATTR {
    R at_corner, at_x, at_y;
    if (one_cell) {
      const float* low = values.data() + cell;
      const float* high = low + table.count[0];
      at_corner = select(upper, R(high[1]), R(low[0]));
      at_x = select(upper, R(high[0]), R(low[1]));
      at_y = select(upper, R(low[1]), R(high[0]));
    } else {
      at_corner = gather(values.data(), corner);
      at_x = gather(values.data(), along_x);
      at_y = gather(values.data(), along_y);
    }
    return keep_if(inside, at_corner + part_x * (at_x - at_corner) + part_y * (at_y - at_corner));
  };
  result.diffuse = interpolate(table.diffuse);
  if (local.has_ambient)
    result.ambient = interpolate(table.ambient);
  if (local.shines && table.shines)
    result.specular = interpolate(table.specular);
  result.faces = (result.diffuse > zero) | (result.ambient > zero);
  return result;
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
