// Real, Integer and Mask: vectors of up to 16 lanes of the processor, with the operators and
// functions that lanes-inl.hpp also defines for one float. The rules in lanes-inl.hpp apply; only
// that file includes this one.
#if defined(TROUPE_ENV_CASTER_VECTORS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_ENV_CASTER_VECTORS_INL_HPP_
#undef TROUPE_ENV_CASTER_VECTORS_INL_HPP_
#else
#define TROUPE_ENV_CASTER_VECTORS_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace troupe::env::caster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using RealTag = hn::CappedTag<float, 16>;
using IntegerTag = hn::RebindToSigned<RealTag>;

struct Mask {
  hn::Mask<RealTag> m;
};

struct Integer {
  hn::Vec<IntegerTag> v;
  Integer() = default;
  HWY_INLINE Integer(hn::Vec<IntegerTag> from) : v(from) {}
  HWY_INLINE Integer(std::int32_t value) : v(hn::Set(IntegerTag(), value)) {}
};

struct Real {
  hn::Vec<RealTag> v;
  Real() = default;
  HWY_INLINE Real(hn::Vec<RealTag> from) : v(from) {}
  HWY_INLINE Real(float value) : v(hn::Set(RealTag(), value)) {}
};

HWY_INLINE Real operator+(Real a, Real b) {
  return hn::Add(a.v, b.v);
}
HWY_INLINE Real operator-(Real a, Real b) {
  return hn::Sub(a.v, b.v);
}
HWY_INLINE Real operator*(Real a, Real b) {
  return hn::Mul(a.v, b.v);
}
HWY_INLINE Real operator/(Real a, Real b) {
  return hn::Div(a.v, b.v);
}
HWY_INLINE Real operator-(Real a) {
  return hn::Neg(a.v);
}
HWY_INLINE Real& operator+=(Real& a, Real b) {
  return a = a + b;
}
HWY_INLINE Real& operator-=(Real& a, Real b) {
  return a = a - b;
}
HWY_INLINE Real& operator*=(Real& a, Real b) {
  return a = a * b;
}
HWY_INLINE Mask operator<(Real a, Real b) {
  return {hn::Lt(a.v, b.v)};
}
HWY_INLINE Mask operator<=(Real a, Real b) {
  return {hn::Le(a.v, b.v)};
}
HWY_INLINE Mask operator>(Real a, Real b) {
  return {hn::Gt(a.v, b.v)};
}
HWY_INLINE Mask operator>=(Real a, Real b) {
  return {hn::Ge(a.v, b.v)};
}
HWY_INLINE Mask operator==(Real a, Real b) {
  return {hn::Eq(a.v, b.v)};
}
HWY_INLINE Mask operator!=(Real a, Real b) {
  return {hn::Ne(a.v, b.v)};
}
// Returns b if either one is NaN, on every processor as x86's instructions do.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
HWY_INLINE Real min(Real a, Real b) {
  return hn::Min(a.v, b.v);
}
HWY_INLINE Real max(Real a, Real b) {
  return hn::Max(a.v, b.v);
}
#else
HWY_INLINE Real min(Real a, Real b) {
  return hn::IfThenElse(hn::Lt(a.v, b.v), a.v, b.v);
}
HWY_INLINE Real max(Real a, Real b) {
  return hn::IfThenElse(hn::Gt(a.v, b.v), a.v, b.v);
}
#endif
HWY_INLINE Real abs(Real a) {
  return hn::Abs(a.v);
}
HWY_INLINE Real sqrt(Real a) {
  return hn::Sqrt(a.v);
}
HWY_INLINE Real floor(Real a) {
  return hn::Floor(a.v);
}
/// The magnitude of `a` with the sign of `b`.
HWY_INLINE Real copysign(Real a, Real b) {
  return hn::CopySign(a.v, b.v);
}

HWY_INLINE Integer operator+(Integer a, Integer b) {
  return hn::Add(a.v, b.v);
}
HWY_INLINE Integer operator-(Integer a, Integer b) {
  return hn::Sub(a.v, b.v);
}
HWY_INLINE Integer operator*(Integer a, Integer b) {
  return hn::Mul(a.v, b.v);
}
/// The lowest 32 bits of the product.
HWY_INLINE Integer wrapped_product(Integer a, Integer b) {
  return a * b;
}
HWY_INLINE Integer operator&(Integer a, Integer b) {
  return hn::And(a.v, b.v);
}
HWY_INLINE Integer operator|(Integer a, Integer b) {
  return hn::Or(a.v, b.v);
}
HWY_INLINE Integer operator^(Integer a, Integer b) {
  return hn::Xor(a.v, b.v);
}
/// Shifts every lane by the same number of bits.
template <int kBits>
HWY_INLINE Integer shift_left(Integer a) {
  return hn::ShiftLeft<kBits>(a.v);
}
template <int kBits>
HWY_INLINE Integer shift_right(Integer a) { // arithmetic
  return hn::ShiftRight<kBits>(a.v);
}
/// Shifts each lane by its own number of bits (0 to 31).
HWY_INLINE Integer shift_left(Integer a, Integer bits) {
  return hn::Shl(a.v, bits.v);
}
HWY_INLINE Mask operator==(Integer a, Integer b) {
  return {hn::RebindMask(RealTag(), hn::Eq(a.v, b.v))};
}
HWY_INLINE Mask operator!=(Integer a, Integer b) {
  return {hn::RebindMask(RealTag(), hn::Ne(a.v, b.v))};
}
HWY_INLINE Mask operator<(Integer a, Integer b) {
  return {hn::RebindMask(RealTag(), hn::Lt(a.v, b.v))};
}
HWY_INLINE Mask operator>(Integer a, Integer b) {
  return b < a;
}
HWY_INLINE Integer min(Integer a, Integer b) {
  return hn::Min(a.v, b.v);
}
HWY_INLINE Integer max(Integer a, Integer b) {
  return hn::Max(a.v, b.v);
}

HWY_INLINE Mask operator&(Mask a, Mask b) {
  return {hn::And(a.m, b.m)};
}
HWY_INLINE Mask operator|(Mask a, Mask b) {
  return {hn::Or(a.m, b.m)};
}
HWY_INLINE Mask operator^(Mask a, Mask b) {
  return {hn::Xor(a.m, b.m)};
}
HWY_INLINE Mask operator!(Mask a) {
  return {hn::Not(a.m)};
}
HWY_INLINE Mask& operator&=(Mask& a, Mask b) {
  return a = a & b;
}
HWY_INLINE Mask& operator|=(Mask& a, Mask b) {
  return a = a | b;
}
/// a and not b.
HWY_INLINE Mask andnot(Mask a, Mask b) {
  return {hn::AndNot(b.m, a.m)};
}
HWY_INLINE bool any(Mask a) {
  return !hn::AllFalse(RealTag(), a.m);
}
HWY_INLINE bool none(Mask a) {
  return hn::AllFalse(RealTag(), a.m);
}
HWY_INLINE bool all(Mask a) {
  return hn::AllTrue(RealTag(), a.m);
}
/// Bit i stands for lane i.
HWY_INLINE std::uint32_t bits(Mask a) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(RealTag(), a.m, bytes);
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8;
}
HWY_INLINE Real select(Mask condition, Real yes, Real no) {
  return hn::IfThenElse(condition.m, yes.v, no.v);
}
HWY_INLINE Integer select(Mask condition, Integer yes, Integer no) {
  return hn::IfThenElse(hn::RebindMask(IntegerTag(), condition.m), yes.v, no.v);
}
/// `value` where the condition holds, 0 elsewhere.
HWY_INLINE Real keep_if(Mask condition, Real value) {
  return hn::IfThenElseZero(condition.m, value.v);
}

/// Rounds toward zero; the number must fit.
HWY_INLINE Integer to_integer(Real a) {
  return hn::ConvertTo(IntegerTag(), a.v);
}
/// Rounds to the nearest integer, ties to even; the number must fit.
HWY_INLINE Integer to_nearest(Real a) {
  return hn::NearestInt(a.v);
}
HWY_INLINE Real to_real(Integer a) {
  return hn::ConvertTo(RealTag(), a.v);
}
HWY_INLINE Integer bits_of(Real a) {
  return hn::BitCast(IntegerTag(), a.v);
}
HWY_INLINE Real from_bits(Integer a) {
  return hn::BitCast(RealTag(), a.v);
}

HWY_INLINE Real gather(const float* table, Integer index) {
  return hn::GatherIndex(RealTag(), table, index.v);
}
HWY_INLINE Integer gather(const std::int32_t* table, Integer index) {
  return hn::GatherIndex(IntegerTag(), table, index.v);
}

} // namespace HWY_NAMESPACE
} // namespace troupe::env::caster
HWY_AFTER_NAMESPACE();

#endif
