
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels/perspective.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h; compiled once per instruction set.
#include "env/caster/kernels/projection-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

const ProjectionKernels* perspective_of_target() {
  return projection_kernels<false>();
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(perspective_of_target);

const ProjectionKernels& perspective_kernels() {
  return *HWY_DYNAMIC_DISPATCH(perspective_of_target)();
}

} // namespace troupe::env::caster
#endif
