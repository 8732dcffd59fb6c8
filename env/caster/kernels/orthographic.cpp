// Few models have orthographic cameras, so AVX-512 gets no code of its own: its processors run the
// AVX2 code.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_AVX3)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels/orthographic.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h; compiled once per instruction set.
#include "env/caster/kernels/projection-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

const ProjectionKernels* orthographic_of_target() {
  return projection_kernels<true>();
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(orthographic_of_target);

const ProjectionKernels& orthographic_kernels() {
  return *HWY_DYNAMIC_DISPATCH(orthographic_of_target)();
}

} // namespace troupe::env::caster
#endif
