// The building blocks of exported policies: C++17 without dependencies, allocations, locks or
// exceptions. First vectors of numbers, and functions of each number.
#ifndef TROUPE_POLICY_NUMBERS_1
#define TROUPE_POLICY_NUMBERS_1

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace troupe_policy {

/// Weights are padded to a multiple of this many outputs.
inline constexpr int kColumns = 16;
constexpr int padded(int outputs) {
  return (outputs + kColumns - 1) / kColumns * kColumns;
}

// Vectors of the compiler, as wide as the target processor supports.
#if defined(__GNUC__) && defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__GNUC__) && defined(__AVX__)
inline constexpr int kLanes = 8;
#elif defined(__GNUC__)
inline constexpr int kLanes = 4;
#else
inline constexpr int kLanes = 1;
#endif

#if defined(__GNUC__)
typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t Words __attribute__((vector_size(kLanes * 4)));
typedef std::uint16_t Halves __attribute__((vector_size(kLanes * 2)));
typedef std::int32_t Integers __attribute__((vector_size(kLanes * 4)));
typedef std::int16_t Shorts __attribute__((vector_size(kLanes * 2)));
typedef std::int8_t Bytes __attribute__((vector_size(kLanes)));

inline __attribute__((always_inline)) void load(const float* from, Vector& to) {
  std::memcpy(&to, from, sizeof to);
}
inline __attribute__((always_inline)) void load(const std::uint16_t* from, Vector& to) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words words = __builtin_convertvector(halves, Words) << 16;
  std::memcpy(&to, &words, sizeof to);
}
inline __attribute__((always_inline)) void load(const std::int8_t* from, Vector& to) {
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  // Widen in steps of a factor of two: GCC 12 falls back to scalar code for larger steps.
  const Shorts shorts = __builtin_convertvector(bytes, Shorts);
  to = __builtin_convertvector(__builtin_convertvector(shorts, Integers), Vector);
}
#else
using Vector = float;
inline void load(const float* from, Vector& to) {
  to = *from;
}
inline void load(const std::uint16_t* from, Vector& to) {
  const std::uint32_t word = static_cast<std::uint32_t>(*from) << 16;
  std::memcpy(&to, &word, sizeof to);
}
inline void load(const std::int8_t* from, Vector& to) {
  to = static_cast<float>(*from);
}
#endif

// The functions below take a float or, where the compiler has vectors, a Vector.
inline std::int32_t truncated(float x) {
  return static_cast<std::int32_t>(x);
}
inline float number(std::int32_t x) {
  return static_cast<float>(x);
}
#if defined(__GNUC__)
inline Integers truncated(Vector x) {
  return __builtin_convertvector(x, Integers);
}
inline Vector number(Integers x) {
  return __builtin_convertvector(x, Vector);
}
#endif

/// e^x within 2 units in the last place, from 2^-126 to 2^127: 2^n times a Taylor series.
template <class Number>
inline Number exponential(Number x) {
  const Number zero = {};
  const Number least = zero - 87.0F;
  const Number most = zero + 88.0F;
  x = x < least ? least : x;
  x = x > most ? most : x;
  const Number scaled = x * 1.44269504F;
  const auto whole = truncated(scaled + (scaled < zero ? zero - 0.5F : zero + 0.5F));
  const Number n = number(whole);
  const Number r = (x - n * 0.693359375F) + n * 2.12194440e-4F; // log(2), split into two parts
  const Number third = 1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r * (1.0F / 720 + r / 5040)));
  const Number series = 1.0F + r * (1.0F + r * (0.5F + r * third));
  const auto bits = (whole + 127) << 23;
  Number power;
  std::memcpy(&power, &bits, sizeof power);
  return series * power;
}
template <class Number>
inline Number sigmoid(Number x) {
  return 1.0F / (1.0F + exponential(-x));
}
template <class Number>
inline Number tanh(Number x) {
  return 1.0F - 2.0F / (exponential(2.0F * x) + 1.0F);
}

enum class Activation { none, relu, elu, tanh, sigmoid };

template <Activation kActivation, class Number>
inline Number activated(Number x) {
  const Number zero = {};
  if constexpr (kActivation == Activation::relu)
    return x > zero ? x : zero;
  if constexpr (kActivation == Activation::elu)
    return x > zero ? x : exponential(x) - 1.0F;
  if constexpr (kActivation == Activation::tanh)
    return tanh(x);
  if constexpr (kActivation == Activation::sigmoid)
    return sigmoid(x);
  return x;
}

template <Activation kActivation, int kCount>
inline void activate(float* x) {
  constexpr int kWhole = kCount / kLanes * kLanes;
  for (int i = 0; i < kWhole; i += kLanes) {
    Vector several;
    std::memcpy(&several, x + i, sizeof several);
    several = activated<kActivation>(several);
    std::memcpy(x + i, &several, sizeof several);
  }
  for (int i = kWhole; i < kCount; ++i)
    x[i] = activated<kActivation>(x[i]);
}

} // namespace troupe_policy

#endif
