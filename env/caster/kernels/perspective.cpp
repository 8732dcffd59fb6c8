#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "env/caster/kernels/perspective.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h; compiled once per instruction set.
#define TROUPE_PROJECTION_KERNELS perspective_kernels
#define TROUPE_ORTHOGRAPHIC false
#include "env/caster/kernels/projection-inl.hpp"
