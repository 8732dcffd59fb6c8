#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, once for each instruction set.
#include "env/caster/draw-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

template <bool kOrthographic>
void draw_projected(Frame& frame, Picture& picture) {
  draw_sky<kOrthographic>(frame, picture);
  make_tables<kOrthographic>(frame);
  Drawing<kOrthographic>(frame, picture).draw();
}

void draw_picture(Frame& frame, Picture& picture) {
  if (frame.camera.orthographic)
    draw_projected<true>(frame, picture);
  else
    draw_projected<false>(frame, picture);
}

void fill_tables(Frame& frame) {
  if (frame.camera.orthographic)
    make_tables<true>(frame);
  else
    make_tables<false>(frame);
}

/// What the first `count` shapes show at the pixels' centres.
template <bool kOrthographic, class Write>
void look(const Frame& frame, Picture& picture, int count, Write&& write) {
  const Tracer<kOrthographic> tracer{frame};
  for (int row = 0; row < frame.block_rows; ++row) {
    RowCandidates& candidates = picture.rows[0];
    candidates.collect(frame, row);
    for (int column = 0; column < frame.block_columns; ++column)
      for (int lane = 0; lane < kBlockPixels; lane += kLanes<Real>) {
        Seen<Real> seen;
        tracer.nearest(block_candidates(candidates, column),
                       block_packet<kOrthographic, Real>(frame.camera, column, row, lane), seen,
                       count);
        alignas(64) float t[kLanes<Real>];
        alignas(64) std::int32_t shape[kLanes<Real>];
        store(seen.t, t);
        store(seen.shape, shape);
        for (int i = 0; i < kLanes<Real>; ++i) {
          const int x = column * kBlockSide + (lane + i) % kBlockSide;
          const int y = row * kBlockSide + (lane + i) / kBlockSide;
          if (x < frame.width && y < frame.height)
            write(static_cast<std::size_t>(y) * static_cast<std::size_t>(frame.width)
                      + static_cast<std::size_t>(x),
                  t[i], shape[i]);
        }
      }
  }
}

template <class Write>
void look_either_way(const Frame& frame, Picture& picture, int count, Write&& write) {
  if (frame.camera.orthographic)
    look<true>(frame, picture, count, write);
  else
    look<false>(frame, picture, count, write);
}

void draw_depth(const Frame& frame, Picture& picture, float* out) {
  // MuJoCo draws what is transparent without writing depths.
  look_either_way(frame, picture, frame.opaque,
                  [out](std::size_t pixel, float t, std::int32_t) { out[pixel] = t; });
}

void draw_shapes(const Frame& frame, Picture& picture, std::int32_t* out) {
  look_either_way(frame, picture, static_cast<int>(frame.shapes.size()),
                  [out](std::size_t pixel, float, std::int32_t shape) { out[pixel] = shape; });
}

using Bytes = hn::Rebind<std::uint8_t, IntegerTag>;

/// One byte of each of `count` packed colours; `grey`: their luma (Rec. 601: .299, .587, .114).
void write_bytes(const std::int32_t* colours, int count, int shift, bool grey, std::uint8_t* out) {
  const Integer byte(255);
  const auto one = [&](const std::int32_t* from) HWY_ATTR {
    const Integer colour = load_int<Real>(from);
    if (!grey)
      return hn::ShiftRightSame(colour.v, shift);
    return luma<Real>(colour).v;
  };
  int x = 0;
  for (; x + kLanes<Real> <= count; x += kLanes<Real>)
    hn::StoreU(hn::DemoteTo(Bytes(), hn::And(one(colours + x), byte.v)), Bytes(), out + x);
  if (x < count) { // the picture has a margin
    HWY_ALIGN std::uint8_t rest[kLanes<Real>];
    hn::StoreU(hn::DemoteTo(Bytes(), hn::And(one(colours + x), byte.v)), Bytes(), rest);
    std::copy_n(rest, count - x, out + x);
  }
}

const Kernels* target_kernels() {
  static constexpr Kernels kKernels{&draw_picture, &fill_tables, &draw_depth,
                                    &draw_shapes,  &write_bytes, kLanes<Real>};
  return &kKernels;
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(target_kernels);

const Kernels& kernels() {
  return *HWY_DYNAMIC_DISPATCH(target_kernels)();
}

} // namespace troupe::env::caster
#endif
