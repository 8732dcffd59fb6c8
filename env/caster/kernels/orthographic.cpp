// Few models have orthographic cameras, so AVX-512 gets no code of its own: its processors run the
// AVX2 code.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_AVX3)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels/orthographic.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h; compiled once per instruction set.
#define TROUPE_PROJECTION_KERNELS orthographic_kernels
#define TROUPE_ORTHOGRAPHIC true
#include "env/caster/kernels/projection-inl.hpp"
