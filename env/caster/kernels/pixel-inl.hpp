// Pixels: their positions, the sky behind them, and the mean of their samples at edges.
#if defined(TROUPE_ENV_CASTER_PIXEL_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_PIXEL_INL_HPP_
#undef TROUPE_ENV_CASTER_PIXEL_INL_HPP_
#else
#define TROUPE_ENV_CASTER_PIXEL_INL_HPP_
#endif

#include "env/caster/kernels/shade-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <class R>
HWY_INLINE R pixel_u(const Camera& camera, R x) {
  return R(camera.u0) + (x + R(.5F)) * R(camera.du);
}
template <class R>
HWY_INLINE R pixel_v(const Camera& camera, R y) {
  return R(camera.v0) - (y + R(.5F)) * R(camera.dv);
}

/// The packed colours of the sky at pixel centres. The frame of `shader` must have a sky.
template <class R, bool kOrthographic, class Scene>
HWY_INLINE IntOf<R> sky_colour(const Shader<kOrthographic, Scene>& shader, R column, R row) {
  const Camera& camera = shader.frame.camera;
  const Vec3<R> right = broadcast<R>(camera.right.data());
  const Vec3<R> up = broadcast<R>(camera.up.data());
  const Vec3<R> forward = broadcast<R>(camera.forward.data());
  const Vec3<R> dx = right * R(camera.du);
  const Vec3<R> dy = -up * R(camera.dv);
  const R u = pixel_u(camera, column);
  const R v = pixel_v(camera, row);
  const Vec3<R> d = kOrthographic ? forward : forward + right * u + up * v;
  const Vec3<R> colour = sample_sky(*shader.frame.sky, d, dx, dy);
  return pack(shader.through_fog(colour, sky_distance(d, camera.far)));
}

/// Rec. 601 luma of packed colours: .299, .587, .114.
template <class R>
HWY_INLINE IntOf<R> luma(IntOf<R> colour) {
  const IntOf<R> byte(255);
  const IntOf<R> sum = (colour & byte) * IntOf<R>(77)
                       + (shift_right<8>(colour) & byte) * IntOf<R>(150)
                       + (shift_right<16>(colour) & byte) * IntOf<R>(29) + IntOf<R>(128);
  return shift_right<8>(sum);
}

/// The keys and packed colours at the centres of pixels, row by row. Equal keys mean that pixels
/// show the same thing.
struct PixelGrid {
  const std::int32_t* keys;
  const std::int32_t* colours;
  int stride;
};

/// The samples of a packet of pixels.
template <class R>
struct Samples {
  Packet<R> packet[4];
  Seen<R> seen[4];
  MaskOf<R> pending[4]; // samples without a colour
  IntOf<R> colour[4];
};

/// Gives samples of the floor the colour of a neighbouring pixel whose centre shows the same.
template <class R>
HWY_INLINE void take_from_neighbours(const PixelGrid& grid, int floor_shape, const Seen<R>& seen,
                                     IntOf<R> index, MaskOf<R>& found, IntOf<R>& result) {
  const MaskOf<R> floor = seen.shape == IntOf<R>(floor_shape);
  if (none(andnot(floor, found)))
    return;
  for (const std::int32_t offset : {1, -1, grid.stride, -grid.stride}) {
    const IntOf<R> beside = index + IntOf<R>(offset);
    const MaskOf<R> same = andnot(floor & (gather(grid.keys, beside) == seen.key), found);
    result = select(same, gather(grid.colours, beside), result);
    found = found | same;
  }
}

/// Shades the first sample without a colour of each pixel and gives its colour to all of the
/// pixel's samples with the same key, until every sample has a colour.
template <class R, bool kOrthographic, class Scene>
HWY_INLINE void shade_samples(const Shader<kOrthographic, Scene>& shader,
                              const Candidates& candidates, IntOf<R> sky, MaskOf<R> pending,
                              Samples<R>& samples) {
  while (any(pending)) {
    Packet<R> packet = samples.packet[3];
    Seen<R> seen = samples.seen[3];
    for (int s = 2; s >= 0; --s) {
      const MaskOf<R> first = samples.pending[s];
      const Seen<R>& other = samples.seen[s];
      packet.u = select(first, samples.packet[s].u, packet.u);
      packet.v = select(first, samples.packet[s].v, packet.v);
      seen.t = select(first, other.t, seen.t);
      seen.shape = select(first, other.shape, seen.shape);
      seen.mirrored_t = select(first, other.mirrored_t, seen.mirrored_t);
      seen.mirrored = select(first, other.mirrored, seen.mirrored);
      seen.key = select(first, other.key, seen.key);
      seen.through = seen.through || other.through;
      seen.through_mirror = seen.through_mirror || other.through_mirror;
    }
    packet = make_packet<kOrthographic>(packet.u, packet.v);
    const IntOf<R> colour = shader.colour(candidates, packet, seen, pending, sky);
    MaskOf<R> left = no_lanes<R>();
    for (int s = 0; s < 4; ++s) {
      const MaskOf<R> same = samples.pending[s] & (samples.seen[s].key == seen.key);
      samples.colour[s] = select(same, colour, samples.colour[s]);
      samples.pending[s] = andnot(samples.pending[s], same);
      left = left | samples.pending[s];
    }
    pending = left;
  }
}

/// The mean of four samples of the pixels (x, y), which have index `index` in the grid. A sample
/// with the same key as the pixel's centre gets the centre's colour. A sample of the floor with the
/// same key as a neighbour's centre gets the neighbour's colour. All others are shaded. `sky()`
/// returns the packed colours of the sky.
template <class R, bool kOrthographic, class Scene, class Sky>
HWY_INLINE IntOf<R> smooth_pixels(const Shader<kOrthographic, Scene>& shader,
                                  const Candidates& candidates, const PixelGrid& grid, IntOf<R> x,
                                  IntOf<R> y, IntOf<R> index, const Sky& sky) {
  const Camera& camera = shader.frame.camera;
  const IntOf<R> key = gather(grid.keys, index);
  const IntOf<R> colour = gather(grid.colours, index);
  const R u = pixel_u(camera, to_real(x));
  const R v = pixel_v(camera, to_real(y));
  Samples<R> samples;
  MaskOf<R> pending = no_lanes<R>();
  for (int s = 0; s < 4; ++s) {
    const auto [across, above] = sample_place(s);
    samples.packet[s] =
        make_packet<kOrthographic>(u + R(across * camera.du), v + R(above * camera.dv));
    samples.seen[s] = shader.tracer.trace(candidates, samples.packet[s]);
    MaskOf<R> found = samples.seen[s].key == key;
    samples.colour[s] = colour;
    if (!all(found))
      take_from_neighbours<R>(grid, shader.frame.floor, samples.seen[s], index, found,
                              samples.colour[s]);
    samples.pending[s] = !found;
    pending = pending | !found;
  }
  if (any(pending))
    shade_samples<R>(shader, candidates, sky(), pending, samples);
  const IntOf<R> low(0x00ff00ff);
  IntOf<R> red_blue(0x00020002);
  IntOf<R> green(2);
  for (const IntOf<R>& sample : samples.colour) {
    red_blue = red_blue + (sample & low);
    green = green + (shift_right<8>(sample) & IntOf<R>(255));
  }
  return (shift_right<2>(red_blue) & low) | shift_left<8>(shift_right<2>(green));
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
