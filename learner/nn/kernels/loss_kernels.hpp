#pragma once
// Losses over the rows of a batch with their gradients (see KernelTable).

#include "learner/nn/kernels/layer_norm.hpp"

namespace troupe::learner::TROUPE_KERNELS {

constexpr float kLowest = -3.0e38f;

/// weights = exp(x - max). Returns their sum, and stores the maximum in `most`.
static float exponentials(const float* x, float* weights, Index n, float* most) {
  Vector top = Vector{} + kLowest;
  each(n, [&](Index j, Index part) { top = larger(get(x + j, part, kLowest), top); });
  const float peak = greatest(top);
  Vector total = {};
  each(n, [&](Index j, Index part) {
    Vector e = exponential(get(x + j, part, kLowest) - peak);
    put(weights + j, e, part);
    if (part < kWidth)
      e = load_part(weights + j, part, 0);
    total += e;
  });
  *most = peak;
  return sum(total);
}

static double categorical_loss(const float* target_logits, const float* reward,
                               const float* discount, const float* weight, const float* logits,
                               float* gradient, float* row_losses, float* scratch, float minimum,
                               float maximum, float reward_scale, Index m, Index atoms) {
  float* weights = scratch;
  float* projected = scratch + atoms + kWidth;
  const float spacing = (maximum - minimum) / static_cast<float>(atoms - 1);
  const float scale = 1.0f / static_cast<float>(m);
  double loss = 0;
  for (Index i = 0; i < m; ++i, target_logits += atoms, logits += atoms, gradient += atoms) {
    float most = 0;
    const float inverse = 1.0f / exponentials(target_logits, weights, atoms, &most);
    for (Index j = 0; j <= atoms; ++j)
      projected[j] = 0;
    const float start = (reward[i] * reward_scale - minimum) / spacing;
    const float last = static_cast<float>(atoms - 1);
    for (Index j = 0; j < atoms; ++j) {
      const float atom = minimum / spacing + static_cast<float>(j);
      float position = start + discount[i] * atom;
      position = position < 0.0f ? 0.0f : position;
      position = position > last ? last : position;
      const Index below = static_cast<Index>(position);
      const float above = position - static_cast<float>(below);
      const float mass = weights[j] * inverse;
      projected[below] += mass * (1.0f - above);
      projected[below + 1] += mass * above; // `above` is 0 for the last atom
    }
    const float total = exponentials(logits, weights, atoms, &most);
    const float log_total = __builtin_logf(total) + most;
    const float normal = 1.0f / total;
    const float importance = weight == nullptr ? 1.0f : weight[i];
    const float row_scale = scale * importance;
    Vector row = {};
    each(atoms, [&](Index j, Index part) {
      const Vector p = get(projected + j, part);
      row += p * (log_total - get(logits + j, part));
      put(gradient + j, (get(weights + j, part) * normal - p) * row_scale, part);
    });
    const float row_loss = sum(row);
    if (row_losses != nullptr)
      row_losses[i] = row_loss;
    loss += static_cast<double>(row_loss * importance);
  }
  return loss;
}

static double expected_value(const float* logits, float* gradient, float minimum, float maximum,
                             Index m, Index atoms) {
  const float spacing = (maximum - minimum) / static_cast<float>(atoms - 1);
  const float scale = -1.0f / static_cast<float>(m);
  Vector lane = {};
  for (int i = 0; i < kWidth; ++i)
    lane[i] = static_cast<float>(i);
  double total = 0;
  for (Index i = 0; i < m; ++i, logits += atoms, gradient += atoms) {
    float most = 0;
    const float normal = 1.0f / exponentials(logits, gradient, atoms, &most);
    Vector value = {};
    each(atoms, [&](Index j, Index part) {
      const Vector atom = minimum + spacing * (lane + static_cast<float>(j));
      value += get(gradient + j, part) * atom;
    });
    const float q = sum(value) * normal;
    total += static_cast<double>(q);
    each(atoms, [&](Index j, Index part) {
      const Vector atom = minimum + spacing * (lane + static_cast<float>(j));
      put(gradient + j, get(gradient + j, part) * normal * (atom - q) * scale, part);
    });
  }
  return total;
}

static void squared_error(const float* x, Index x_row, const float* target, Index target_row,
                          const float* weight, float scale, float* gradient, Index gradient_row,
                          float* row_losses, Index m, Index n) {
  for (Index i = 0; i < m; ++i, x += x_row, target += target_row, gradient += gradient_row) {
    const float factor = 2.0f * scale * weight[i];
    row_losses[i] = sum_of(n, [=](Index j, Index part) {
      const Vector d = get(x + j, part) - get(target + j, part);
      put(gradient + j, d * factor, part);
      return d * d;
    });
  }
}

static void softmax_error(const float* logits, Index logits_row, const float* wanted,
                          const float* weight, float scale, float* gradient, Index gradient_row,
                          float* row_losses, Index m, Index n) {
  for (Index i = 0; i < m; ++i, logits += logits_row, wanted += n, gradient += gradient_row) {
    float most = 0;
    const float total = exponentials(logits, gradient, n, &most);
    const float log_total = __builtin_logf(total) + most;
    const float normal = 1.0f / total;
    const float factor = scale * weight[i];
    row_losses[i] = sum_of(n, [=](Index j, Index part) {
      const Vector p = get(wanted + j, part);
      put(gradient + j, (get(gradient + j, part) * normal - p) * factor, part);
      return p * (log_total - get(logits + j, part));
    });
  }
}

static void unit_rows(const float* x, Index x_row, std::uint16_t* half, float* lengths, Index m,
                      Index n) {
  for (Index i = 0; i < m; ++i, x += x_row, half += n) {
    const float length = __builtin_sqrtf(sum_of(n, [=](Index j, Index part) {
      const Vector v = get(x + j, part);
      return v * v;
    }));
    lengths[i] = length < 1e-8f ? 1e-8f : length;
    const float inverse = 1.0f / lengths[i];
    each(n, [=](Index j, Index part) { put(half + j, get(x + j, part) * inverse, part); });
  }
}

static void contrast(std::uint16_t* logits, float sharpness, const float* weight, float* scratch,
                     float* row_losses, Index m, Index n) {
  for (Index i = 0; i < m; ++i, logits += n) {
    each(n,
         [=](Index j, Index part) { put(scratch + j, get(logits + j, part) * sharpness, part); });
    const float own = scratch[i % n];
    float most = 0;
    const float total = exponentials(scratch, scratch, n, &most);
    row_losses[i] = __builtin_logf(total) + most - own;
    const float normal = 1.0f / total;
    const float factor = weight[i];
    scratch[i % n] -= total;
    each(n, [=](Index j, Index part) {
      put(logits + j, get(scratch + j, part) * normal * factor, part);
    });
  }
}

static void unit_rows_backward(const std::uint16_t* of_half, const float* x, Index x_row,
                               const float* lengths, float* gradient, Index gradient_row, Index m,
                               Index n) {
  for (Index i = 0; i < m; ++i, of_half += n, x += x_row, gradient += gradient_row) {
    const float inverse = 1.0f / lengths[i];
    const float along = inverse * inverse * sum_of(n, [=](Index j, Index part) {
                          return get(of_half + j, part) * get(x + j, part);
                        });
    each(n, [=](Index j, Index part) {
      const Vector d = get(of_half + j, part) - get(x + j, part) * along;
      put(gradient + j, get(gradient + j, part) + d * inverse, part);
    });
  }
}

// Squashed Gaussians: see squashed_gaussian.hpp.
constexpr float kLowestLog = -20.0f;
constexpr float kHighestLog = 2.0f;

/// log(1 + x) for x between 0 and 1, as twice the inverse hyperbolic tangent of x / (x + 2).
static inline Vector log_of_one_plus(Vector x) {
  const Vector s = x / (x + 2.0f);
  const Vector square = s * s;
  Vector series = Vector{} + 2.0f / 15.0f;
  for (int term = 13; term > 0; term -= 2)
    series = series * square + 2.0f / static_cast<float>(term);
  return s * series;
}

static inline Vector within_limits(Vector log_deviation) {
  const Vector high = Vector{} + kHighestLog;
  const Vector v = larger(Vector{} + kLowestLog, log_deviation);
  return v > high ? high : v;
}

static void squashed_sample(const float* raw, const float* noise, float* action,
                            float* log_probability, Index m, Index n) {
  constexpr float kLogOfTwo = 0.69314718f, kLogNormaliser = 0.91893853f; // log(sqrt(2 pi))
  for (Index i = 0; i < m; ++i, raw += 2 * n, noise += n, action += n)
    log_probability[i] =
        -static_cast<float>(n) * kLogNormaliser + sum_of(n, [=](Index j, Index part) {
          const Vector e = get(noise + j, part);
          const Vector log_deviation = within_limits(get(raw + n + j, part));
          const Vector x = get(raw + j, part) + exponential(log_deviation) * e;
          put(action + j, hyperbolic_tangent(x), part);
          // log(1 - tanh(x)^2) = 2 (log 2 - |x| - log(1 + exp(-2 |x|)))
          const Vector size = x < 0.0f ? -x : x;
          const Vector log_slope =
              2.0f * (kLogOfTwo - size - log_of_one_plus(exponential(-2.0f * size)));
          return -0.5f * e * e - log_deviation - log_slope;
        });
}

static void squashed_gradient(const float* raw, const float* noise, const float* action,
                              const float* action_gradient, float weight, float* gradient, Index m,
                              Index n) {
  for (Index i = 0; i < m;
       ++i, raw += 2 * n, noise += n, action += n, action_gradient += n, gradient += 2 * n)
    each(n, [=](Index j, Index part) {
      const Vector a = get(action + j, part);
      const Vector of_mean = 2.0f * weight * a - get(action_gradient + j, part) * (1.0f - a * a);
      put(gradient + j, of_mean, part);
      const Vector log_deviation = get(raw + n + j, part);
      const Vector moved =
          of_mean * exponential(within_limits(log_deviation)) * get(noise + j, part) - weight;
      const Vector above = log_deviation < kLowestLog ? Vector{} : moved;
      put(gradient + n + j, log_deviation > kHighestLog ? Vector{} : above, part);
    });
}

} // namespace troupe::learner::TROUPE_KERNELS
