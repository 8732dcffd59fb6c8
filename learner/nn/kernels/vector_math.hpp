#pragma once
// Vectors of the widest kind in the instruction set for which this file is compiled. Only the
// kernels include it. Everything is static, so that the rest of the program never shares a
// function compiled for a newer processor (for the same reason it uses no templates of the standard
// library).

#include <cstdint>

namespace troupe::learner::TROUPE_KERNELS {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

using Index = std::int64_t;
typedef float Vector __attribute__((vector_size(kWidth * 4)));
typedef std::int32_t Integers __attribute__((vector_size(kWidth * 4)));
typedef float Unaligned __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));

static inline Vector load(const float* p) {
  return *reinterpret_cast<const Unaligned*>(p);
}
static inline void store(float* p, Vector v) {
  *reinterpret_cast<Unaligned*>(p) = v;
}

/// A vector of `value`. Subtracts 0, which the compiler leaves out; the addition of 0 would change
/// -0, so that it took a real addition before each broadcast.
static inline Vector broadcast(float value) {
  return value - Vector{};
}

static inline Vector load_part(const float* p, Index count, float fill) {
  Vector v = broadcast(fill);
  for (Index i = 0; i < count; ++i)
    v[i] = p[i];
  return v;
}

static inline void store_part(float* p, Vector v, Index count) {
  for (Index i = 0; i < count; ++i)
    p[i] = v[i];
}

static inline Vector larger(Vector a, Vector b) {
  return a > b ? a : b;
}

// A bfloat16 is the upper half of a float, with eight exponent and seven fraction bits.
typedef std::uint32_t Bits __attribute__((vector_size(kWidth * 4)));
typedef std::uint16_t Narrow __attribute__((vector_size(kWidth * 2)));
typedef std::uint16_t NarrowUnaligned
    __attribute__((vector_size(kWidth * 2), aligned(2), may_alias));

static inline Narrow load(const std::uint16_t* p) {
  return *reinterpret_cast<const NarrowUnaligned*>(p);
}
static inline void store(std::uint16_t* p, Narrow v) {
  *reinterpret_cast<NarrowUnaligned*>(p) = v;
}

static inline Narrow load_part(const std::uint16_t* p, Index count) {
  Narrow v = {};
  for (Index i = 0; i < count; ++i)
    v[i] = p[i];
  return v;
}

static inline void store_part(std::uint16_t* p, Narrow v, Index count) {
  for (Index i = 0; i < count; ++i)
    p[i] = v[i];
}

static inline Vector widened(Narrow bits) {
#if defined(__AVX512BW__) // GCC 12 converts by halves
  typedef short Shorts __attribute__((vector_size(32)));
  const auto whole = reinterpret_cast<Bits>(__builtin_ia32_pmovzxwd512_mask(
      reinterpret_cast<Shorts>(bits), Integers{}, static_cast<unsigned short>(-1)));
#else
  const auto whole = __builtin_convertvector(bits, Bits);
#endif
  return reinterpret_cast<Vector>(whole << 16);
}

/// Rounds to nearest, ties to even. NaN stays NaN. With AVX512_BF16, numbers below 1e-38 become 0.
static inline Narrow narrowed(Vector v) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<Narrow>(__builtin_ia32_cvtneps2bf16_v16sf(v));
#else
  const Bits bits = reinterpret_cast<Bits>(v);
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Bits quiet = Bits{} + 0x7fc0u;
  return __builtin_convertvector(v == v ? rounded : quiet, Narrow);
#endif
}

/// Lane i receives lane i + shift of v, wrapping around at the end.
template <int kShift>
static inline Vector rotated(Vector v) {
  Integers lanes = {};
  for (int i = 0; i < kWidth; ++i)
    lanes[i] = (i + kShift) % kWidth;
  return __builtin_shuffle(v, lanes);
}

static inline float sum(Vector v) {
#if defined(__AVX512F__)
  v += rotated<8>(v);
#endif
#if defined(__AVX2__)
  v += rotated<4>(v);
#endif
  v += rotated<2>(v);
  v += rotated<1>(v);
  return v[0];
}

static inline float greatest(Vector v) {
#if defined(__AVX512F__)
  v = larger(v, rotated<8>(v));
#endif
#if defined(__AVX2__)
  v = larger(v, rotated<4>(v));
#endif
  v = larger(v, rotated<2>(v));
  v = larger(v, rotated<1>(v));
  return v[0];
}

/// Transposes a square of kWidth rows. Each round interleaves the upper half with the lower half.
static inline void transpose(Vector (&rows)[kWidth]) {
  Integers low = {};
  Integers high = {};
  for (int i = 0; i < kWidth; ++i) {
    low[i] = i / 2 + (i % 2) * kWidth;
    high[i] = low[i] + kWidth / 2;
  }
  for (int round = 1; round < kWidth; round *= 2) {
    Vector next[kWidth];
    for (int i = 0; i < kWidth / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kWidth / 2], low);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kWidth / 2], high);
    }
    for (int i = 0; i < kWidth; ++i)
      rows[i] = next[i];
  }
}

/// exponential() for arguments of at most 88.
static inline Vector bounded_exponential(Vector x) {
  const Vector low = Vector{} - 87.0f;
  x = x < low ? low : x;
  const Vector magic = Vector{} + 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  const Vector shifted = x * 1.44269504f + magic;
  const Vector n = shifted - magic;
  Vector r = x - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  Vector p = Vector{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Integers exponent = (reinterpret_cast<Integers>(shifted) + 127) << 23;
  return p * reinterpret_cast<Vector>(exponent);
}

/// exp within 2 units in the last place. Arguments below -87 give about 1e-38, arguments above 88
/// about 1.6e38.
static inline Vector exponential(Vector x) {
  const Vector high = Vector{} + 88.0f;
  return bounded_exponential(x > high ? high : x);
}

/// NaN stays NaN.
static inline Vector elu_of(Vector v) {
  return v > 0.0f ? v : bounded_exponential(v > 0.0f ? Vector{} : v) - 1.0f;
}

static inline Vector hyperbolic_tangent(Vector x) {
  const Vector magnitude = x < 0.0f ? -x : x;
  const Vector e = exponential(magnitude * -2.0f);
  const Vector t = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -t : t;
}

} // namespace troupe::learner::TROUPE_KERNELS
