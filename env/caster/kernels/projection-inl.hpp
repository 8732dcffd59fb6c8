// The kernels of one projection: defines the function TROUPE_PROJECTION_KERNELS(), which returns
// those with TROUPE_ORTHOGRAPHIC for the best instruction set of this processor.
#if defined(TROUPE_ENV_CASTER_PROJECTION_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_PROJECTION_INL_HPP_
#undef TROUPE_ENV_CASTER_PROJECTION_INL_HPP_
#else
#define TROUPE_ENV_CASTER_PROJECTION_INL_HPP_
#endif

#include "env/caster/kernels/draw-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <bool kOrthographic>
void draw_picture(Frame& frame, Picture& picture) {
  draw_sky<kOrthographic>(frame, picture);
  make_tables<kOrthographic>(frame);
  Drawing<kOrthographic>(frame, picture).draw();
}

/// Finds the distance and index of the visible one of the first `count` shapes at each pixel's
/// centre. A null output is skipped.
template <bool kOrthographic>
void look(const Frame& frame, Picture& picture, int count, float* distances, std::int32_t* shapes) {
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
          if (x >= frame.width || y >= frame.height)
            continue;
          const std::size_t pixel =
              static_cast<std::size_t>(y) * static_cast<std::size_t>(frame.width)
              + static_cast<std::size_t>(x);
          if (distances != nullptr)
            distances[pixel] = t[i];
          if (shapes != nullptr)
            shapes[pixel] = shape[i];
        }
      }
  }
}

namespace {

const ProjectionKernels* kernels_of_target() {
  static constexpr ProjectionKernels kKernels{&draw_picture<TROUPE_ORTHOGRAPHIC>,
                                              &make_tables<TROUPE_ORTHOGRAPHIC>,
                                              &look<TROUPE_ORTHOGRAPHIC>};
  return &kKernels;
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(kernels_of_target);

const ProjectionKernels& TROUPE_PROJECTION_KERNELS() {
  return *HWY_DYNAMIC_DISPATCH(kernels_of_target)();
}

} // namespace troupe::env::caster
#endif

#endif // TROUPE_ENV_CASTER_PROJECTION_INL_HPP_
