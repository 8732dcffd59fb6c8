#pragma once

// What lanes-inl.hpp needs instead of Highway where formulas are compiled for single floats
// (TROUPE_CASTER_FLOATS): on the device under nvcc, else on the host.
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
