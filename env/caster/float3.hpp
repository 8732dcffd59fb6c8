#pragma once

#include <array>
#include <cmath>

namespace troupe::env::caster {

/// Single-precision vectors and rotation matrices (row-major; the columns are the axes).
using Float3 = std::array<float, 3>;
using Float9 = std::array<float, 9>;

inline Float3 float3(const float* from) {
  return {from[0], from[1], from[2]};
}
inline Float3 operator+(const Float3& a, const Float3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
inline Float3 operator-(const Float3& a, const Float3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline Float3 operator*(const Float3& a, float b) {
  return {a[0] * b, a[1] * b, a[2] * b};
}
inline Float3 times(const Float3& a, const Float3& b) {
  return {a[0] * b[0], a[1] * b[1], a[2] * b[2]};
}
inline float dot(const Float3& a, const Float3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
inline Float3 cross(const Float3& a, const Float3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline float length(const Float3& a) {
  return std::sqrt(dot(a, a));
}
inline Float3 column(const Float9& m, std::size_t i) {
  return {m[i], m[3 + i], m[6 + i]};
}
/// outward() rotates a vector from the frame whose axes are the matrix's columns into the outer
/// frame; inward() is the inverse.
inline Float3 outward(const Float9& m, const Float3& a) {
  return {m[0] * a[0] + m[1] * a[1] + m[2] * a[2], m[3] * a[0] + m[4] * a[1] + m[5] * a[2],
          m[6] * a[0] + m[7] * a[1] + m[8] * a[2]};
}
inline Float3 inward(const Float9& m, const Float3& a) {
  return {m[0] * a[0] + m[3] * a[1] + m[6] * a[2], m[1] * a[0] + m[4] * a[1] + m[7] * a[2],
          m[2] * a[0] + m[5] * a[1] + m[8] * a[2]};
}

template <typename T>
bool all_finite(const T* values, int count) {
  for (int i = 0; i < count; ++i)
    if (!std::isfinite(values[i]))
      return false;
  return true;
}

} // namespace troupe::env::caster
