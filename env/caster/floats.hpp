#pragma once

// Replaces Highway's macros for lanes-inl.hpp where the formulas are compiled for single floats
// (TROUPE_CASTER_FLOATS): device functions under nvcc, host functions otherwise.
#ifdef __CUDACC__
#define HWY_INLINE __device__ inline
#define HWY_NOINLINE __device__ __noinline__
#define HWY_NAMESPACE of_device_floats
#else
#define HWY_INLINE inline
#define HWY_NOINLINE inline
#define HWY_NAMESPACE of_host_floats
#endif
#define HWY_ATTR
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
