// Finds what a packet of rays shows.
#if defined(TROUPE_ENV_CASTER_TRACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_TRACE_INL_HPP_
#undef TROUPE_ENV_CASTER_TRACE_INL_HPP_
#else
#define TROUPE_ENV_CASTER_TRACE_INL_HPP_
#endif

#include "env/caster/kernels/infinite_plane-inl.hpp"
#include "env/caster/kernels/rays-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

/// A set of candidates: the items whose bits are set.
struct ItemSet {
  const std::int32_t* items;
  const std::uint64_t* masks; // [words]; bit i is items[i]
  int words;

  template <class Visit>
  HWY_INLINE void for_each(Visit&& visit) const {
    for (int word = 0; word < words; ++word)
      for (std::uint64_t left = masks[word]; left != 0; left &= left - 1)
        visit(items[word * 64 + lowest_bit(left)]);
  }
  /// Calls visit(item) for each item until it returns true.
  template <class Visit>
  HWY_INLINE void for_each_until(Visit&& visit) const {
    for (int word = 0; word < words; ++word)
      for (std::uint64_t left = masks[word]; left != 0; left &= left - 1)
        if (visit(items[word * 64 + lowest_bit(left)]))
          return;
  }
  template <class Visit>
  HWY_INLINE void for_each_reversed(Visit&& visit) const {
    for (int word = words - 1; word >= 0; --word)
      for (std::uint64_t left = masks[word]; left != 0;) {
        const int bit = highest_bit(left);
        left ^= std::uint64_t{1} << bit;
        visit(items[word * 64 + bit]);
      }
  }
  HWY_INLINE bool empty() const {
    for (int word = 0; word < words; ++word)
      if (masks[word] != 0)
        return false;
    return true;
  }
};

struct Candidates {
  ItemSet visible, mirrored, shadowed;
};

template <class R>
struct Seen {
  R t;                         // of the nearest opaque shape
  IntOf<R> shape;              // its index; -1 if there is none
  R mirrored_t;                // of the nearest mirrored shape
  IntOf<R> mirrored;           // its index; -1 if there is none
  IntOf<R> key;                // differs between pixels that show different things
  bool through = false;        // some lane has a transparent shape in front
  bool through_mirror = false; // some lane has one in the mirror image
};

template <bool kOrthographic, class Scene = Frame>
struct Tracer {
  const Scene& frame;

  /// Finds the nearest opaque shapes.
  template <class R>
  HWY_INLINE void nearest(const Candidates& candidates, const Packet<R>& packet, Seen<R>& seen,
                          int limit) const {
    R best(frame.camera.far);
    IntOf<R> shape(-1);
    const R near(frame.camera.near);
    candidates.visible.for_each([&](std::int32_t i) HWY_ATTR {
      if (i >= limit)
        return;
      const Shape& tried = frame.shapes[static_cast<std::size_t>(i)];
      const R t = enter<kOrthographic>(tried, tried.ray, packet, best);
      const MaskOf<R> closer = (t < best) & (t >= near);
      best = select(closer, t, best);
      shape = select(closer, IntOf<R>(i), shape);
    });
    seen.t = best;
    seen.shape = shape;
  }

  /// The sky hides shapes that are farther away.
  template <class R>
  HWY_INLINE void hide_behind_sky(const Packet<R>& packet, Seen<R>& seen) const {
    const MaskOf<R> hidden = seen.t > sky_distance(world_direction(packet), frame.camera.far);
    seen.shape = select(hidden, IntOf<R>(-1), seen.shape);
    seen.t = select(hidden, R(frame.camera.far), seen.t);
  }

  template <class R>
  HWY_INLINE Vec3<R> world_direction(const Packet<R>& packet) const {
    const Camera& camera = frame.camera;
    const Vec3<R> forward = broadcast<R>(camera.forward.data());
    if constexpr (kOrthographic)
      return forward;
    return forward + broadcast<R>(camera.right.data()) * packet.u
           + broadcast<R>(camera.up.data()) * packet.v;
  }

  /// Finds what the mirror shows, in the lanes where the mirror itself is visible.
  template <class R>
  HWY_INLINE void mirror(const Candidates& candidates, const Packet<R>& packet,
                         Seen<R>& seen) const {
    seen.mirrored = IntOf<R>(-1);
    seen.mirrored_t = R(frame.camera.far);
    if (frame.mirror.shape < 0 || candidates.mirrored.empty())
      return;
    const MaskOf<R> on_mirror = mirroring(packet, seen);
    if (none(on_mirror))
      return;
    candidates.mirrored.for_each([&](std::int32_t i) HWY_ATTR {
      if (i >= frame.opaque)
        return;
      const Shape& tried = frame.shapes[static_cast<std::size_t>(i)];
      const R t = enter<kOrthographic>(tried, tried.mirrored, packet, seen.mirrored_t);
      const MaskOf<R> closer = on_mirror & (t < seen.mirrored_t) & (t > seen.t);
      seen.mirrored_t = select(closer, t, seen.mirrored_t);
      seen.mirrored = select(closer, IntOf<R>(i), seen.mirrored);
    });
  }

  template <class R>
  HWY_INLINE MaskOf<R> mirroring(const Packet<R>& packet, const Seen<R>& seen) const {
    const Shape& shape = frame.shapes[static_cast<std::size_t>(frame.mirror.shape)];
    MaskOf<R> on_mirror = seen.shape == IntOf<R>(frame.mirror.shape);
    if (shape.kind == ShapeKind::box && any(on_mirror)) {
      const R z = point_at(ray_in<kOrthographic>(shape.ray, packet), seen.t).z;
      on_mirror = on_mirror & (z > R(shape.size[2] * .999F));
    }
    return on_mirror;
  }

  template <class R>
  HWY_INLINE Seen<R> trace(const Candidates& candidates, const Packet<R>& packet) const {
    Seen<R> seen;
    nearest(candidates, packet, seen, frame.opaque);
    if (any(seen.t > R(frame.sky_nearest)))
      hide_behind_sky(packet, seen);
    mirror(candidates, packet, seen);
    seen.key = (seen.shape + IntOf<R>(1)) ^ shift_left<16>(seen.mirrored + IntOf<R>(1));
    seen.through = false;
    seen.through_mirror = false;
    if (frame.opaque < static_cast<int>(frame.shapes.size())) {
      if (frame.mirror.shape >= 0 && !candidates.mirrored.empty())
        for_each_transparent<true>(candidates, packet, seen,
                                   [&](std::int32_t i, R, MaskOf<R> before) HWY_ATTR {
                                     seen.through_mirror = true;
                                     mix_key<R>(before, -i - 1, seen.key);
                                   });
      for_each_transparent<false>(candidates, packet, seen,
                                  [&](std::int32_t i, R, MaskOf<R> before) HWY_ATTR {
                                    seen.through = true;
                                    mix_key<R>(before, i + 1, seen.key);
                                  });
    }
    return seen;
  }

  template <class R>
  static HWY_INLINE void mix_key(MaskOf<R> lanes, std::int32_t number, IntOf<R>& key) {
    key = select(lanes, wrapped_product(key, IntOf<R>(0x01000193)) ^ IntOf<R>(number), key);
  }

  /// Calls visit(number, t, lanes) for the transparent shapes in front of the visible shape, or in
  /// front of its mirror image, from near to far or from far to near.
  template <bool kMirrored, bool kFarthestFirst = false, class R, class Visit>
  HWY_INLINE void for_each_transparent(const Candidates& candidates, const Packet<R>& packet,
                                       const Seen<R>& seen, Visit&& visit) const {
    MaskOf<R> lanes = seen.t < R(3e38F);
    if constexpr (kMirrored)
      lanes = mirroring(packet, seen);
    if (kMirrored && none(lanes))
      return;
    const R near = kMirrored ? seen.t : R(frame.camera.near);
    const R limit = kMirrored ? seen.mirrored_t : seen.t;
    const auto try_shape = [&](std::int32_t i) HWY_ATTR {
      if (i < frame.opaque)
        return;
      const Shape& tried = frame.shapes[static_cast<std::size_t>(i)];
      const R t =
          enter<kOrthographic>(tried, kMirrored ? tried.mirrored : tried.ray, packet, limit);
      const MaskOf<R> before = lanes & (t < limit) & (t >= near);
      if (any(before))
        visit(i, t, before);
    };
    const ItemSet& items = kMirrored ? candidates.mirrored : candidates.visible;
    if constexpr (kFarthestFirst)
      items.for_each_reversed(try_shape);
    else
      items.for_each(try_shape);
  }
};

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
