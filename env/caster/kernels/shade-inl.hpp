// The colours that a packet of rays shows.
#if defined(TROUPE_ENV_CASTER_SHADE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_SHADE_INL_HPP_
#undef TROUPE_ENV_CASTER_SHADE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_SHADE_INL_HPP_
#endif

#include "env/caster/kernels/light-inl.hpp"
#include "env/caster/kernels/surface-inl.hpp"
#include "env/caster/kernels/trace-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <class R>
HWY_INLINE IntOf<R> pack(const Vec3<R>& colour) {
  // Adding 2^23 rounds to the nearest level and leaves it in the lowest byte.
  const R one(1.0F), levels(255.0F), shift(8388608.0F);
  const IntOf<R> byte(255);
  const IntOf<R> red = bits_of(min(colour.x, one) * levels + shift) & byte;
  const IntOf<R> green = bits_of(min(colour.y, one) * levels + shift) & byte;
  const IntOf<R> blue = bits_of(min(colour.z, one) * levels + shift) & byte;
  return red | shift_left<8>(green) | shift_left<16>(blue);
}

template <class R>
HWY_INLINE Vec3<R> unpack(IntOf<R> colour) {
  const IntOf<R> byte(255);
  const R scale(1.0F / 255);
  return {to_real(colour & byte) * scale, to_real(shift_right<8>(colour) & byte) * scale,
          to_real(shift_right<16>(colour) & byte) * scale};
}

/// The offset of a sample from the pixel's centre, to the right and up, in pixels.
struct SamplePlace {
  float across;
  float above;
};

HWY_INLINE SamplePlace sample_place(int sample) {
  constexpr SamplePlace kPlaces[4] = {
      {-.125F, -.375F}, {.375F, -.125F}, {-.375F, .125F}, {.125F, .375F}};
  return kPlaces[sample];
}

/// How far (metres) a sample of a height field may be below the surface without being shadowed by
/// it, in scenes of 2 m or more. This is the bias of MuJoCo's shadow map a few metres below a lamp;
/// it grows with the slope.
template <class R>
HWY_INLINE R field_bias(const Vec3<R>& normal) {
  const R steep = sqrt(max(R(1.0F) - normal.z * normal.z, R(0.0F)));
  return R(2e-5F) + R(3.5e-3F) * steep;
}

template <bool kOrthographic, class Scene = Frame>
struct Shader {
  const Scene& frame;
  Tracer<kOrthographic, Scene> tracer{frame};

  /// The lanes of `lit` that have no caster between them and the light.
  template <class R>
  HWY_INLINE MaskOf<R> unshadowed(const Candidates& candidates, int receiver, int light,
                                  const Packet<R>& packet, R t, MaskOf<R> lit) const {
    const auto try_caster = [&](std::int32_t c) HWY_ATTR {
      const Shape& caster = frame.shapes[static_cast<std::size_t>(c)];
      const Vec3<R> point = point_at(ray_in<kOrthographic>(caster.ray, packet), t);
      const bool directional = frame.lights[static_cast<std::size_t>(light)].directional;
      const float first = shadow_start(frame, directional, c == receiver);
      lit = andnot(lit, darkens(caster, point, light, directional, first, lit));
    };
    if (frame.shapes[static_cast<std::size_t>(receiver)].kind == ShapeKind::plane) {
      candidates.shadowed.for_each_until([&](std::int32_t p) HWY_ATTR {
        const ShadowPair& pair = frame.pairs[static_cast<std::size_t>(p)];
        if (pair.receiver == receiver && pair.light == light)
          try_caster(pair.caster);
        return pair.receiver > receiver || (pair.receiver == receiver && pair.light > light);
      });
      return lit;
    }
    const std::size_t row =
        static_cast<std::size_t>(receiver) * frame.lights.size() + static_cast<std::size_t>(light);
    for (std::int32_t i = frame.caster_first[row]; i < frame.caster_first[row + 1]; ++i) {
      if (none(lit))
        break;
      try_caster(frame.caster_list[static_cast<std::size_t>(i)]);
    }
    return lit;
  }

  template <class R>
  HWY_INLINE Brightness<R> shine_on(const Shape& shape, int light,
                                    const Surface<R>& surface) const {
    const auto l = static_cast<std::size_t>(light);
    if (shape.first_table >= 0) {
      const auto& table = frame.tables[static_cast<std::size_t>(shape.first_table) + l];
      if (table.light == light)
        return table_brightness(shape, table, shape.lights[l], surface.point);
    }
    if (shape.kind == ShapeKind::plane)
      return brightness<true>(shape, frame.lights[l], shape.lights[l], surface);
    return brightness<false>(shape, frame.lights[l], shape.lights[l], surface);
  }

  enum class As { opaque, transparent, mirrored };

  /// The colour of shape `number` at parameter t, for the lanes of `wanted`.
  template <As kAs, class R>
  HWY_INLINE Vec3<R> shade(const Candidates& candidates, int number, const Packet<R>& packet, R t,
                           MaskOf<R> wanted) const {
    const Shape& shape = frame.shapes[static_cast<std::size_t>(number)];
    const RayFrame& from = kAs == As::mirrored ? shape.mirrored : shape.ray;
    const Ray<R> ray = ray_in<kOrthographic>(from, packet);
    TexturePlace<R> given;
    const Surface<R> surface =
        surface_at(shape, ray, common_origin<kOrthographic>(from), t, packet, wanted, given);
    Vec3<R> sum;
    if (kAs == As::opaque && frame.effects && shape.kind == ShapeKind::height_field)
      sum = light_samples(candidates, number, packet, t, wanted, surface, ray);
    else
      sum = light_surface<kAs>(number, surface, wanted, [&](int l, MaskOf<R> lit) HWY_ATTR {
        return unshadowed(candidates, number, l, packet, t, lit);
      });
    if (shape.texture == nullptr)
      return sum;
    return apply_texture<kOrthographic>(frame, shape, surface, from, t, given, wanted, sum);
  }

  /// The mean light of a pixel's four samples on a height field.
  template <class R>
  HWY_NOINLINE Vec3<R> light_samples(const Candidates& candidates, int number,
                                     const Packet<R>& packet, R t, MaskOf<R> wanted,
                                     const Surface<R>& centre, const Ray<R>& ray) const {
    const Shape& shape = frame.shapes[static_cast<std::size_t>(number)];
    const R zero(0.0F);
    MaskOf<R> open[kMaxLights];
    for (std::size_t l = 0; l < frame.lights.size(); ++l) {
      open[l] = wanted;
      if (!frame.lights[l].shadowed)
        continue;
      const Brightness<R> b = shine_on(shape, static_cast<int>(l), centre);
      const MaskOf<R> lit = wanted & b.faces & (b.diffuse + b.ambient > zero);
      open[l] =
          any(lit) ? unshadowed(candidates, number, static_cast<int>(l), packet, t, lit) : lit;
    }
    const Vec3<R> right = broadcast<R>(shape.ray.right.data()) * R(frame.camera.du);
    const Vec3<R> up = broadcast<R>(shape.ray.up.data()) * R(frame.camera.dv);
    Vec3<R> sum{zero, zero, zero};
    for (int s = 0; s < 4; ++s) {
      const auto [across, above] = sample_place(s);
      const Vec3<R> off = right * R(across) + up * R(above);
      const Vec3<R> o = kOrthographic ? ray.o + off : ray.o;
      const Vec3<R> d = kOrthographic ? ray.d : ray.d + off;
      const FieldSample<R> sample =
          field_sample(*shape.field, o, d, ray.o, ray.d, centre.normal, centre.point);
      Surface<R> surface = centre;
      surface.point = select<R>(sample.inside, sample.point, centre.point);
      surface.normal = select<R>(sample.inside, sample.normal, centre.normal);
      const MaskOf<R> below =
          sample.inside & (sample.above < -field_bias(surface.normal) * R(frame.shadow_scale));
      sum =
          sum
          + light_surface<As::opaque>(number, surface, wanted, [&](int l, MaskOf<R> lit) HWY_ATTR {
              return andnot(lit & open[static_cast<std::size_t>(l)], below);
            });
    }
    return sum * R(0.25F);
  }

  /// Adds up all lights on a surface. `open(light, lit)` returns the lanes of `lit` that are not in
  /// shadow.
  template <As kAs, class R, class Open>
  HWY_INLINE Vec3<R> light_surface(int number, const Surface<R>& surface, MaskOf<R> wanted,
                                   const Open& open) const {
    const Shape& shape = frame.shapes[static_cast<std::size_t>(number)];
    const R scale(kAs == As::mirrored ? frame.mirror.reflectance : 1.0F);
    Vec3<R> first = broadcast<R>(shape.glow.data()) * scale;
    const int lights = static_cast<int>(frame.lights.size());
    const bool passes = kAs == As::opaque && frame.effects;
    for (int l = 0; l < lights; ++l)
      if (!passes || !frame.lights[static_cast<std::size_t>(l)].shadowed)
        add_light<kAs == As::mirrored>(first, shape.lights[static_cast<std::size_t>(l)],
                                       shine_on(shape, l, surface), scale);
    Vec3<R> sum = at_most_one(first);
    for (int l = 0; passes && l < lights; ++l) {
      if (!frame.lights[static_cast<std::size_t>(l)].shadowed)
        continue;
      const Brightness<R> b = shine_on(shape, l, surface);
      MaskOf<R> lit = wanted & b.faces;
      if (none(lit))
        continue;
      lit = open(l, lit);
      if (none(lit))
        continue;
      const R zero(0.0F);
      Vec3<R> more{zero, zero, zero};
      add_light<false>(more, shape.lights[static_cast<std::size_t>(l)], b, scale);
      more = at_most_one(more);
      sum = {sum.x + keep_if(lit, more.x), sum.y + keep_if(lit, more.y),
             sum.z + keep_if(lit, more.z)};
    }
    return sum;
  }

  /// Calls visit(number, lanes) once for each distinct number in the lanes of `wanted`, except
  /// negative ones.
  template <class R, class Visit>
  HWY_INLINE void for_each_number(IntOf<R> numbers, MaskOf<R> wanted, Visit&& visit) const {
    alignas(64) std::int32_t each[kLanes<R>];
    store(numbers, each);
    std::uint32_t left = bits(wanted & (numbers > IntOf<R>(-1)));
    while (left != 0) {
      const std::int32_t number = each[lowest_bit(left)];
      const MaskOf<R> lanes = wanted & (numbers == IntOf<R>(number));
      visit(number, lanes);
      left &= ~bits(lanes);
    }
  }

  /// The packed colours of what the lanes of `wanted` show; `sky` where they show nothing.
  template <class R>
  HWY_INLINE IntOf<R> colour(const Candidates& candidates, const Packet<R>& packet,
                             const Seen<R>& seen, MaskOf<R> wanted, IntOf<R> sky) const {
    const R zero(0.0F);
    Vec3<R> result{zero, zero, zero};
    if (any(wanted & (seen.shape < IntOf<R>(0))))
      result = unpack<R>(sky);
    for_each_number<R>(seen.shape, wanted, [&](std::int32_t number, MaskOf<R> lanes) HWY_ATTR {
      const Vec3<R> shaded = shade<As::opaque>(candidates, number, packet, seen.t, lanes);
      result = select<R>(lanes, through_fog(shaded, seen.t), result);
    });
    if (seen.through_mirror || any(wanted & (seen.mirrored > IntOf<R>(-1))))
      add_image(candidates, packet, seen, wanted, result);
    if (frame.hazy != nullptr)
      blend_haze(packet, seen, result);
    if (seen.through)
      blend_transparent<false>(candidates, packet, seen, result);
    return pack(result);
  }

  /// Blends a colour at parameter t with the fog.
  template <class R>
  HWY_INLINE Vec3<R> through_fog(const Vec3<R>& colour, R t) const {
    const Fog& fog = frame.fog;
    if (!fog.thick)
      return colour;
    const R clear = clamp((R(fog.end) - t) * R(fog.inverse_range), R(0.0F), R(1.0F));
    const Vec3<R> grey = broadcast<R>(fog.colour.data());
    return grey + (colour - grey) * clear;
  }

  /// Adds the mirror image.
  template <class R>
  HWY_INLINE void add_image(const Candidates& candidates, const Packet<R>& packet,
                            const Seen<R>& seen, MaskOf<R> wanted, Vec3<R>& result) const {
    const R zero(0.0F);
    Vec3<R> image{zero, zero, zero};
    for_each_number<R>(seen.mirrored, wanted, [&](std::int32_t number, MaskOf<R> lanes) HWY_ATTR {
      const Vec3<R> shaded =
          shade<As::mirrored>(candidates, number, packet, seen.mirrored_t, lanes);
      image = select<R>(lanes, through_fog(shaded, seen.mirrored_t), image);
    });
    if (seen.through_mirror)
      blend_transparent<true>(candidates, packet, seen, image);
    result = at_most_one(result + image);
  }

  template <class R>
  HWY_INLINE void blend_haze(const Packet<R>& packet, const Seen<R>& seen, Vec3<R>& result) const {
    const RayFrame& rays = frame.hazy->ray;
    const Haze haze = make_haze(frame.camera.far, rays.origin[2], frame.map_haze);
    if (!(haze.distance > 0))
      return;
    const HazeSeen<R> before = haze_before(haze, ray_in<kOrthographic>(rays, packet).d,
                                           select(seen.shape > IntOf<R>(-1), seen.t, R(kNowhere)));
    const Vec3<R> colour = through_fog(broadcast<R>(frame.haze_colour.data()), before.t);
    result = result + (colour - result) * before.opacity;
  }

  /// Blends transparent shapes as MuJoCo does: from near to far, and then a second time from far to
  /// near.
  template <bool kMirrored, class R>
  HWY_INLINE void blend_transparent(const Candidates& candidates, const Packet<R>& packet,
                                    const Seen<R>& seen, Vec3<R>& result) const {
    constexpr As kAs = kMirrored ? As::mirrored : As::transparent;
    result = at_most_one(result);
    const auto blend = [&](std::int32_t i, R t, MaskOf<R> before) HWY_ATTR {
      const Vec3<R> shaded = at_most_one(shade<kAs>(candidates, i, packet, t, before));
      const R alpha(frame.shapes[static_cast<std::size_t>(i)].rgba[3]);
      const Vec3<R> mixed = through_fog(shaded, t) * alpha + result * (R(1.0F) - alpha);
      result = select<R>(before, mixed, result);
    };
    tracer.template for_each_transparent<kMirrored>(candidates, packet, seen, blend);
    tracer.template for_each_transparent<kMirrored, true>(candidates, packet, seen, blend);
  }
};

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
