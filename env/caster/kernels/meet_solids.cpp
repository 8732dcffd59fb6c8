#include "env/caster/solid.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels/meet_solids.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h; compiled once per instruction set.
#include "env/caster/kernels/meet-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {
namespace {

void meet_solids_of_target(const SolidSet& set, const SolidRays& rays) {
  for (std::size_t at = 0; at < rays.pitch; at += kLanes<Real>)
    meet_packet<Real>(set, rays, at);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::env::caster {

HWY_EXPORT(meet_solids_of_target);

void meet_solids(const SolidSet& set, const SolidRays& rays) {
  HWY_DYNAMIC_DISPATCH(meet_solids_of_target)(set, rays);
}

} // namespace troupe::env::caster
#endif
