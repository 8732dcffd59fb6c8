// Number types with the same operators and functions for one float and for a vector of floats. A
// formula is written once, as a template over its number type `R`: `Real` (all lanes of the
// processor's vectors, at most 16) or plain `float` (a GPU thread, a test).
//
//   R          float      Real
//   MaskOf<R>  bool       Mask        result of comparisons; & | ! andnot any all none bits select
//   IntOf<R>   int32_t    Integer     + - * & | ^ << >> (arithmetic), comparisons
//   kLanes<R>  1          4, 8 or 16
//
// Every operation is rounded to IEEE single precision and none are fused, so that a lane's result
// is the same, bit for bit, for every vector width. Compile with -ffp-contract=off (nvcc:
// -fmad=false). min and max return their second operand if either one is NaN.
//
// The translation unit of hwy/foreach_target.h includes this file once per instruction set, so the
// toggle replaces the include guard. Where TROUPE_CASTER_FLOATS is defined (floats.hpp), the file
// is included once, without vectors and Highway, and R is float.
#if defined(TROUPE_ENV_CASTER_LANES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_LANES_INL_HPP_
#undef TROUPE_ENV_CASTER_LANES_INL_HPP_
#else
#define TROUPE_ENV_CASTER_LANES_INL_HPP_
#endif

#ifdef TROUPE_CASTER_FLOATS
#include "env/caster/floats.hpp"
#else
#include "env/caster/kernels/vectors-inl.hpp"
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

template <class R>
struct LaneTraits;
template <>
struct LaneTraits<float> {
  using MaskType = bool;
  using IntType = std::int32_t;
  static constexpr int kCount = 1;
};
#ifndef TROUPE_CASTER_FLOATS
template <>
struct LaneTraits<Real> {
  using MaskType = Mask;
  using IntType = Integer;
  static constexpr int kCount = static_cast<int>(hn::MaxLanes(RealTag()));
};
#endif
template <class R>
using MaskOf = typename LaneTraits<R>::MaskType;
template <class R>
using IntOf = typename LaneTraits<R>::IntType;
template <class R>
inline constexpr int kLanes = LaneTraits<R>::kCount;

// ---- for one float, the functions that vectors-inl.hpp has for vectors

HWY_INLINE float min(float a, float b) {
  return a < b ? a : b;
}
HWY_INLINE float max(float a, float b) {
  return a > b ? a : b;
}
HWY_INLINE float abs(float a) {
  return std::fabs(a);
}
HWY_INLINE float sqrt(float a) {
  return std::sqrt(a);
}
HWY_INLINE float floor(float a) {
  return std::floor(a);
}
HWY_INLINE float copysign(float a, float b) {
  return std::copysign(a, b);
}
HWY_INLINE std::int32_t min(std::int32_t a, std::int32_t b) {
  return a < b ? a : b;
}
HWY_INLINE std::int32_t max(std::int32_t a, std::int32_t b) {
  return a > b ? a : b;
}
HWY_INLINE std::int32_t wrapped_product(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
template <int kBits>
HWY_INLINE std::int32_t shift_left(std::int32_t a) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << kBits);
}
template <int kBits>
HWY_INLINE std::int32_t shift_right(std::int32_t a) {
  return a >> kBits;
}
HWY_INLINE std::int32_t shift_left(std::int32_t a, std::int32_t bits) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << bits);
}
HWY_INLINE bool andnot(bool a, bool b) {
  return a && !b;
}
HWY_INLINE bool any(bool a) {
  return a;
}
HWY_INLINE bool none(bool a) {
  return !a;
}
HWY_INLINE bool all(bool a) {
  return a;
}
HWY_INLINE std::uint32_t bits(bool a) {
  return a ? 1 : 0;
}
HWY_INLINE float select(bool condition, float yes, float no) {
  return condition ? yes : no;
}
HWY_INLINE std::int32_t select(bool condition, std::int32_t yes, std::int32_t no) {
  return condition ? yes : no;
}
HWY_INLINE float keep_if(bool condition, float value) {
  return condition ? value : 0.0F;
}
HWY_INLINE std::int32_t to_integer(float a) {
  return static_cast<std::int32_t>(a);
}
HWY_INLINE std::int32_t to_nearest(float a) {
  return static_cast<std::int32_t>(std::nearbyint(a));
}
HWY_INLINE float to_real(std::int32_t a) {
  return static_cast<float>(a);
}
HWY_INLINE std::int32_t bits_of(float a) {
  return std::bit_cast<std::int32_t>(a);
}
HWY_INLINE float from_bits(std::int32_t a) {
  return std::bit_cast<float>(a);
}
HWY_INLINE float gather(const float* table, std::int32_t index) {
  return table[index];
}
HWY_INLINE std::int32_t gather(const std::int32_t* table, std::int32_t index) {
  return table[index];
}

// ---- memory: kLanes<R> consecutive numbers with any alignment

HWY_INLINE void store(float value, float* to) {
  *to = value;
}
HWY_INLINE void store(std::int32_t value, std::int32_t* to) {
  *to = value;
}

#ifdef TROUPE_CASTER_FLOATS
template <class R>
HWY_INLINE R load(const float* from) {
  return *from;
}
template <class R>
HWY_INLINE IntOf<R> load_int(const std::int32_t* from) {
  return *from;
}
template <class R>
HWY_INLINE IntOf<R> lane_numbers() {
  return 0;
}
template <class R>
HWY_INLINE MaskOf<R> mask_of_bits(std::uint32_t lanes) {
  return (lanes & 1) != 0;
}
#else
template <class R>
HWY_INLINE R load(const float* from) {
  if constexpr (kLanes<R> == 1 && std::is_same_v<R, float>)
    return *from;
  else
    return R(hn::LoadU(RealTag(), from));
}
template <class R>
HWY_INLINE IntOf<R> load_int(const std::int32_t* from) {
  if constexpr (std::is_same_v<R, float>)
    return *from;
  else
    return IntOf<R>(hn::LoadU(IntegerTag(), from));
}
HWY_INLINE void store(Real value, float* to) {
  hn::StoreU(value.v, RealTag(), to);
}
HWY_INLINE void store(Integer value, std::int32_t* to) {
  hn::StoreU(value.v, IntegerTag(), to);
}
/// 0, 1, 2, … in the lanes.
template <class R>
HWY_INLINE IntOf<R> lane_numbers() {
  if constexpr (std::is_same_v<R, float>)
    return 0;
  else
    return IntOf<R>(hn::Iota(IntegerTag(), 0));
}
/// The lanes whose bits are set.
template <class R>
HWY_INLINE MaskOf<R> mask_of_bits(std::uint32_t lanes) {
  if constexpr (std::is_same_v<R, float>) {
    return (lanes & 1) != 0;
  } else {
    const std::uint8_t bytes[8] = {static_cast<std::uint8_t>(lanes),
                                   static_cast<std::uint8_t>(lanes >> 8)};
    return {hn::LoadMaskBits(RealTag(), bytes)};
  }
}
#endif

/// The index of the lowest set bit; there must be one.
HWY_INLINE int lowest_bit(std::uint64_t bits) {
#ifdef __CUDA_ARCH__
  return __ffsll(static_cast<long long>(bits)) - 1;
#else
  return std::countr_zero(bits);
#endif
}
/// The index of the highest set bit; there must be one.
HWY_INLINE int highest_bit(std::uint64_t bits) {
#ifdef __CUDA_ARCH__
  return 63 - __clzll(static_cast<long long>(bits));
#else
  return 63 - std::countl_zero(bits);
#endif
}
template <class R>
HWY_INLINE MaskOf<R> no_lanes() {
  return mask_of_bits<R>(0);
}

// ---- formulas

template <class R>
HWY_INLINE R clamp(R value, R low, R high) {
  return min(max(value, low), high);
}
template <class R>
HWY_INLINE R square(R a) {
  return a * a;
}

/// Rounds to the nearest integer, ties to even. `whole` must be between -2^22 and 2^22.
template <class R>
HWY_INLINE IntOf<R> small_integer(R whole) {
  return bits_of(whole + R(12582912.0F)) - IntOf<R>(0x4b400000);
}

/// log2 of a positive normal number, with an absolute error up to 4e-6. Other arguments give some
/// finite number.
template <class R>
HWY_INLINE R log2(R a) {
  const IntOf<R> pattern = bits_of(a);
  // The mantissa is in [sqrt(1/2), sqrt(2)): the exponent changes where the mantissa reaches
  // sqrt(2).
  const IntOf<R> shifted = pattern - IntOf<R>(0x3f3504f3);
  const R exponent = to_real(shift_right<23>(shifted));
  const R m = from_bits((shifted & IntOf<R>(0x007fffff)) + IntOf<R>(0x3f3504f3));
  const R z = (m - R(1.0F)) / (m + R(1.0F)); // artanh series of log((1 + z) / (1 - z))
  const R z2 = z * z;
  const R series =
      R(2.88539008F) + z2 * (R(0.961796694F) + z2 * (R(0.577078016F) + z2 * R(0.412198583F)));
  return exponent + z * series;
}

/// 2 to the power of a, with a relative error up to 3e-7; clamped to normal numbers.
template <class R>
HWY_INLINE R exp2(R a) {
  const R clamped = clamp(a, R(-126.0F), R(126.0F));
  const R whole = floor(clamped + R(0.5F));
  const R x = clamped - whole; // [-1/2, 1/2]
  const R series =
      R(1.0F)
      + x
            * (R(0.693147182F)
               + x
                     * (R(0.240226507F)
                        + x
                              * (R(0.0555041087F)
                                 + x
                                       * (R(0.00961812911F)
                                          + x * (R(0.00133335581F) + x * R(0.000154035304F))))));
  return from_bits(bits_of(series) + shift_left<23>(to_integer(whole)));
}

/// a to the power of `exponent`; 0 if a is not positive.
template <class R>
HWY_INLINE R power(R a, R exponent) {
  return keep_if(a > R(0.0F), exp2(log2(max(a, R(1e-30F))) * exponent));
}

// ---- vectors of three

template <class R>
struct Vec3 {
  R x, y, z;
};
template <class R>
HWY_INLINE Vec3<R> operator+(const Vec3<R>& a, const Vec3<R>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class R>
HWY_INLINE Vec3<R> operator-(const Vec3<R>& a, const Vec3<R>& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class R>
HWY_INLINE Vec3<R> operator*(const Vec3<R>& a, R b) {
  return {a.x * b, a.y * b, a.z * b};
}
template <class R>
HWY_INLINE Vec3<R> operator-(const Vec3<R>& a) {
  return {-a.x, -a.y, -a.z};
}
template <class R>
HWY_INLINE R dot(const Vec3<R>& a, const Vec3<R>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class R>
HWY_INLINE Vec3<R> cross(const Vec3<R>& a, const Vec3<R>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
/// Scales a vector to length 1. A vector shorter than 1e-18 becomes almost zero, never NaN.
template <class R>
HWY_INLINE Vec3<R> normalized(const Vec3<R>& a) {
  return a * (R(1.0F) / sqrt(max(dot(a, a), R(1e-36F))));
}
template <class R>
HWY_INLINE Vec3<R> select(MaskOf<R> condition, const Vec3<R>& yes, const Vec3<R>& no) {
  return {select(condition, yes.x, no.x), select(condition, yes.y, no.y),
          select(condition, yes.z, no.z)};
}
/// The same vector in each lane.
template <class R>
HWY_INLINE Vec3<R> broadcast(const float* three) {
  return {R(three[0]), R(three[1]), R(three[2])};
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
