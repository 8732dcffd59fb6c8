#pragma once
// LayerNorm with the activation after it, and its derivative (see KernelTable). A row stays in the
// first-level cache during all passes over it.

#include "learner/nn/kernels/kernel_table.hpp"
#include "learner/nn/kernels/vector_loops.hpp"

namespace troupe::learner::TROUPE_KERNELS {

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

/// kept: normalised x, float or bfloat16; may be x. y and half_y: null if not wanted.
template <class Kept, class After>
static void norm_with(const float* x, Kept* kept, const float* gain, const float* shift, float* y,
                      std::uint16_t* half_y, Index half_row, float* inverse, Index m, Index n,
                      After after) {
  for (Index i = 0; i < m; ++i) {
    const float total = sum_of(n, [=](Index j, Index part) { return get(x + j, part); });
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
      put(kept + j, v, part);
      if (y != nullptr)
        put(y + j, out, part);
      if (half_y != nullptr)
        put(half_y + j, out, part);
    });
    x += n;
    kept += n;
    y += y == nullptr ? 0 : n;
    half_y += half_y == nullptr ? 0 : half_row;
    inverse[i] = scale;
  }
}

/// Calls with(function) for the activation.
template <class With>
static void with_activation(AfterNorm after, With&& with) {
  switch (after) {
  case AfterNorm::none:
    return with([](Vector v) { return v; });
  case AfterNorm::elu:
    return with([](Vector v) { return elu_of(v); });
  case AfterNorm::relu:
    return with([](Vector v) { return v < 0.0f ? Vector{} : v; });
  case AfterNorm::tanh:
    return with([](Vector v) { return hyperbolic_tangent(v); });
  }
}

static void norm(AfterNorm after, float* x, const float* gain, const float* shift, float* y,
                 float* inverse, Index m, Index n) {
  with_activation(after, [=](auto function) {
    norm_with<float>(x, x, gain, shift, y, nullptr, 0, inverse, m, n, function);
  });
}

static void half_norm(const HalfNorm& h, const float* x, Index m, Index n) {
  with_activation(h.after, [=](auto function) {
    norm_with(x, h.kept, h.gain, h.shift, h.y, h.half_y, h.half_row, h.inverse, m, n, function);
  });
}

/// half: receives the gradient of x too, unless null.
template <class Y, class Kept, class Slope>
static void norm_backward_with(const Y* y, Index y_row, const Kept* normalised,
                               const float* inverse, const float* gain, float* gradient,
                               std::uint16_t* half, Index half_row, NormSums sums, Index m, Index n,
                               Slope slope) {
  const float share = 1.0f / static_cast<float>(n);
  for (Index i = 0; i < m; ++i, y += y_row, normalised += n, gradient += n) {
    Vector mean = {};
    Vector projection = {};
    each(n, [&](Index j, Index part) {
      const Vector x = get(normalised + j, part);
      const Vector d = get(gradient + j, part) * slope(get(y + j, part));
      if (sums.gain != nullptr) {
        put(sums.gain + j, get(sums.gain + j, part) + d * x, part);
        put(sums.shift + j, get(sums.shift + j, part) + d, part);
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
      put(gradient + j, d, part);
      if (half != nullptr)
        put(half + j, d, part);
      if (sums.bias != nullptr)
        put(sums.bias + j, get(sums.bias + j, part) + d, part);
    });
    half += half == nullptr ? 0 : half_row;
  }
}

/// Calls with(function) for the activation's derivative, of its output.
template <class With>
static void with_slope(AfterNorm after, With&& with) {
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

static void norm_backward(AfterNorm after, const float* y, const float* normalised,
                          const float* inverse, const float* gain, float* gradient, NormSums sums,
                          Index m, Index n) {
  with_slope(after, [=](auto slope) {
    norm_backward_with(y, n, normalised, inverse, gain, gradient, nullptr, 0, sums, m, n, slope);
  });
}

static void half_norm_backward(const HalfNorm& h, float* gradient, std::uint16_t* half,
                               Index half_row, NormSums sums, Index m, Index n) {
  with_slope(h.after, [=](auto slope) {
    if (h.half_y != nullptr)
      norm_backward_with(h.half_y, h.half_row, h.kept, h.inverse, h.gain, gradient, half, half_row,
                         sums, m, n, slope);
    else
      norm_backward_with(h.y, n, h.kept, h.inverse, h.gain, gradient, half, half_row, sums, m, n,
                         slope);
  });
}

} // namespace troupe::learner::TROUPE_KERNELS
