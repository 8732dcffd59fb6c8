#pragma once
// LayerNorm with the activation after it, and its derivative (see KernelTable). A row stays in the
// first-level cache during all passes over it.

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/vector_loops.hpp"

namespace troupe::learner::TROUPE_KERNELS {

static inline void zero(float* x, Index count) {
  for (Index i = 0; i < count; ++i)
    x[i] = 0;
}

/// The sum of value(j, count) over the vectors of a row. Two sums hide half of the latency.
template <class F>
static inline float sum_of(Index n, F&& value) {
  Vector even = {};
  Vector odd = {};
  Index j = 0;
  for (; j + 2 * kWidth <= n; j += 2 * kWidth) {
    even += value(j, kWidth);
    odd += value(j + kWidth, kWidth);
  }
  each(n - j, [&](Index k, Index part) { even += value(j + k, part); });
  return sum(even + odd);
}

template <class After>
static void norm_with(const std::uint16_t* product, const float* bias, float* x, const float* gain,
                      const float* shift, float* y, std::uint16_t* half_y, float* inverse, Index m,
                      Index n, After after) {
  for (Index i = 0; i < m; ++i) {
    const float total = sum_of(n, [=](Index j, Index part) {
      if (product == nullptr)
        return get(x + j, part);
      const Vector v = get(product + j, part) + get(bias + j, part);
      put(x + j, v, part);
      return v;
    });
    const float mean = total / static_cast<float>(n);
    const float squares = sum_of(n, [=](Index j, Index part) {
      const Vector d = get(x + j, part, mean) - mean;
      return d * d;
    });
    const float scale =
        1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + 1e-5f); // as torch's LayerNorm
    each(n, [=](Index j, Index part) {
      const Vector v = (get(x + j, part) - mean) * scale;
      const Vector out = after(v * get(gain + j, part) + get(shift + j, part));
      put(x + j, v, part);
      put(y + j, out, part);
      if (half_y != nullptr)
        put(half_y + j, out, part);
    });
    product += product == nullptr ? 0 : n;
    x += n;
    y += n;
    half_y += half_y == nullptr ? 0 : n;
    inverse[i] = scale;
  }
}

static void norm(AfterNorm after, const std::uint16_t* product, const float* bias, float* x,
                 const float* gain, const float* shift, float* y, std::uint16_t* half_y,
                 float* inverse, Index m, Index n) {
  const auto with = [=](auto function) {
    norm_with(product, bias, x, gain, shift, y, half_y, inverse, m, n, function);
  };
  switch (after) {
  case AfterNorm::none:
    return with([](Vector v) { return v; });
  case AfterNorm::elu:
    return with([](Vector v) {
      const Vector low = v > 0.0f ? Vector{} : v;
      return v > 0.0f ? v : exponential(low) - 1.0f;
    });
  case AfterNorm::relu:
    return with([](Vector v) { return v < 0.0f ? Vector{} : v; });
  case AfterNorm::tanh:
    return with([](Vector v) { return hyperbolic_tangent(v); });
  }
}

template <class Slope>
static void norm_backward_with(const float* y, const float* normalised, const float* inverse,
                               const float* gain, float* gradient, HalfGradients halves,
                               float* gain_gradient, float* shift_gradient, float* bias_gradient,
                               Index m, Index n, Slope slope) {
  const bool with_parameters = gain_gradient != nullptr;
  if (with_parameters) {
    zero(gain_gradient, n);
    zero(shift_gradient, n);
  }
  if (bias_gradient != nullptr)
    zero(bias_gradient, n);
  const float share = 1.0f / static_cast<float>(n);
  for (Index i = 0; i < m; ++i, y += n, normalised += n) {
    if (halves.of_y != nullptr) {
      each(n, [&](Index j, Index part) { put(gradient + j, get(halves.of_y + j, part), part); });
      halves.of_y += n;
    }
    Vector mean = {};
    Vector projection = {};
    each(n, [&](Index j, Index part) {
      const Vector x = get(normalised + j, part);
      const Vector d = get(gradient + j, part) * slope(get(y + j, part));
      if (with_parameters) {
        put(gain_gradient + j, get(gain_gradient + j, part) + d * x, part);
        put(shift_gradient + j, get(shift_gradient + j, part) + d, part);
      }
      const Vector scaled = d * get(gain + j, part);
      put(gradient + j, scaled, part);
      mean += scaled;
      projection += scaled * x;
    });
    const float a = sum(mean) * share;
    const float b = sum(projection) * share;
    each(n, [&](Index j, Index part) {
      const Vector x = get(normalised + j, part);
      const Vector d = (get(gradient + j, part) - a - x * b) * inverse[i];
      if (halves.of_x != nullptr)
        put(halves.of_x + j, d, part);
      else
        put(gradient + j, d, part);
      if (bias_gradient != nullptr)
        put(bias_gradient + j, get(bias_gradient + j, part) + d, part);
    });
    if (halves.of_x != nullptr)
      halves.of_x += n;
    else
      gradient += n;
  }
}

static void norm_backward(AfterNorm after, const float* y, const float* normalised,
                          const float* inverse, const float* gain, float* gradient,
                          HalfGradients halves, float* gain_gradient, float* shift_gradient,
                          float* bias_gradient, Index m, Index n) {
  const auto with = [=](auto slope) {
    norm_backward_with(y, normalised, inverse, gain, gradient, halves, gain_gradient,
                       shift_gradient, bias_gradient, m, n, slope);
  };
  switch (after) {
  case AfterNorm::none:
    return with([](Vector) { return Vector{} + 1.0f; });
  case AfterNorm::elu:
    return with([](Vector v) { return v > 0.0f ? Vector{} + 1.0f : v + 1.0f; });
  case AfterNorm::relu:
    return with([](Vector v) { return v > 0.0f ? Vector{} + 1.0f : Vector{}; });
  case AfterNorm::tanh:
    return with([](Vector v) { return 1.0f - v * v; });
  }
}

} // namespace troupe::learner::TROUPE_KERNELS
