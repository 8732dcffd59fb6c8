// Compiled once per instruction set with TROUPE_KERNELS naming the namespace (see CMakeLists.txt).
#include "learner/nn/kernels/kernel_table.hpp"

#include "learner/nn/kernels/layer_norm.hpp"
#include "learner/nn/kernels/matrix_kernel.hpp"
#include "learner/nn/kernels/vector_loops.hpp"

namespace troupe::learner::TROUPE_KERNELS {
namespace {

void elu(float* x, Index count) {
  each(count, [=](Index i, Index part) {
    const Vector v = get(x + i, part);
    const Vector low = v > 0.0f ? Vector{} : v;
    put(x + i, v > 0.0f ? v : exponential(low) - 1.0f, part);
  });
}

void relu(float* x, Index count) {
  each(count, [=](Index i, Index part) {
    const Vector v = get(x + i, part);
    put(x + i, v < 0.0f ? Vector{} : v, part); // NaN stays NaN
  });
}

void tanh(const float* x, float* y, Index count) {
  each(count, [=](Index i, Index part) { put(y + i, hyperbolic_tangent(get(x + i, part)), part); });
}

template <class Derivative>
void activation_backward(const float* y, float* gradient, float* bias_gradient, Index m, Index n,
                         Derivative derivative) {
  if (bias_gradient == nullptr)
    return each(m * n, [=](Index i, Index part) {
      put(gradient + i, get(gradient + i, part) * derivative(get(y + i, part)), part);
    });
  each(n, [=](Index j, Index part) {
    Vector total = {};
    for (Index i = 0; i < m; ++i) {
      float* g = gradient + i * n + j;
      const Vector v = get(g, part) * derivative(get(y + i * n + j, part));
      put(g, v, part);
      total += v;
    }
    put(bias_gradient + j, total, part);
  });
}

void elu_backward(const float* y, float* gradient, float* bias_gradient, Index m, Index n) {
  activation_backward(y, gradient, bias_gradient, m, n,
                      [](Vector v) { return v > 0.0f ? Vector{} + 1.0f : v + 1.0f; });
}

void relu_backward(const float* y, float* gradient, float* bias_gradient, Index m, Index n) {
  activation_backward(y, gradient, bias_gradient, m, n,
                      [](Vector v) { return v > 0.0f ? Vector{} + 1.0f : Vector{}; });
}

void column_sums(const float* x, float* sums, Index m, Index n) {
  each(n, [=](Index j, Index part) {
    Vector total = {};
    for (Index i = 0; i < m; ++i)
      total += get(x + i * n + j, part);
    put(sums + j, total, part);
  });
}

constexpr float kLowest = -3.0e38f;

/// weights = exp(x - max). Returns their sum, and stores the maximum in `most`.
float exponentials(const float* x, float* weights, Index n, float* most) {
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

double categorical_loss(const float* target_logits, const float* reward, const float* discount,
                        const float* weight, const float* logits, float* gradient,
                        float* row_losses, float* scratch, float minimum, float maximum,
                        float reward_scale, Index m, Index atoms) {
  float* weights = scratch;
  float* projected = scratch + atoms + kWidth;
  const float spacing = (maximum - minimum) / static_cast<float>(atoms - 1);
  const float scale = 1.0f / static_cast<float>(m);
  double loss = 0;
  for (Index i = 0; i < m; ++i, target_logits += atoms, logits += atoms, gradient += atoms) {
    float most = 0;
    const float inverse = 1.0f / exponentials(target_logits, weights, atoms, &most);
    zero(projected, atoms + 1);
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

double expected_value(const float* logits, float* gradient, float minimum, float maximum, Index m,
                      Index atoms) {
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

Vector square_root(Vector v) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector>(
      __builtin_ia32_sqrtps512_mask(v, v, static_cast<unsigned short>(-1), 4));
#elif defined(__AVX2__)
  return __builtin_ia32_sqrtps256(v);
#else
  for (int i = 0; i < kWidth; ++i)
    v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}

void adam(float* parameter, const float* gradient, float* mean, float* square, Index count,
          float scale, float decay, float rate, float beta1, float beta2, float inverse_correction2,
          float epsilon) {
  each(count, [=](Index i, Index part) {
    const Vector g = get(gradient + i, part) * scale;
    const Vector m = get(mean + i, part);
    const Vector v = get(square + i, part);
    const Vector m1 = m + (g - m) * (1.0f - beta1);
    const Vector v1 = v * beta2 + g * g * (1.0f - beta2);
    put(mean + i, m1, part);
    put(square + i, v1, part);
    const Vector step = m1 * rate / (square_root(v1) * inverse_correction2 + epsilon);
    put(parameter + i, get(parameter + i, part) * decay - step, part);
  });
}

void lerp(float* target, const float* source, float weight, Index count) {
  if (weight == 1.0f)
    return each(count, [=](Index i, Index part) { put(target + i, get(source + i, part), part); });
  each(count, [=](Index i, Index part) {
    const Vector t = get(target + i, part);
    put(target + i, t + (get(source + i, part) - t) * weight, part);
  });
}

double sum_of_squares(const float* x, Index count) {
  constexpr Index kChunk = 4096; // summed in float within a chunk, in double between chunks
  double total = 0;
  for (Index start = 0; start < count; start += kChunk) {
    Vector even = {};
    Vector odd = {};
    Index i = start;
    const Index end = count - start < kChunk ? count : start + kChunk;
    for (; i + 2 * kWidth <= end; i += 2 * kWidth) {
      const Vector a = load(x + i);
      const Vector b = load(x + i + kWidth);
      even += a * a;
      odd += b * b;
    }
    float rest = sum(even + odd);
    for (; i < end; ++i)
      rest += x[i] * x[i];
    total += static_cast<double>(rest);
  }
  return total;
}

bool all_finite(const float* x, Index count) {
  Vector zeros = {}; // x * 0 is 0, or NaN if x is not finite
  each(count, [&](Index i, Index part) { zeros += get(x + i, part) * 0.0f; });
  return sum(zeros) == 0.0f;
}

void narrow(const float* x, std::uint16_t* out, Index count) {
  each(count, [=](Index i, Index part) { put(out + i, get(x + i, part), part); });
}

void widen(const std::uint16_t* x, const float* bias, float* out, Index m, Index n) {
  for (Index i = 0; i < m; ++i, x += n, out += n)
    each(n, [=](Index j, Index part) {
      const Vector v = get(x + j, part);
      put(out + j, bias == nullptr ? v : v + get(bias + j, part), part);
    });
}

void bytes_to_float(const std::uint8_t* in, float* out, Index count, float scale, float offset) {
  for (Index i = 0; i < count; ++i)
    out[i] = static_cast<float>(in[i]) * scale + offset;
}

} // namespace

#define TROUPE_TEXT_OF(x) #x
#define TROUPE_TEXT(x) TROUPE_TEXT_OF(x)

extern const KernelTable table;
const KernelTable table = {TROUPE_TEXT(TROUPE_KERNELS) + sizeof("kernels_") - 1,
                           kPanel,
                           pack,
                           multiply,
                           elu,
                           relu,
                           tanh,
                           elu_backward,
                           relu_backward,
                           column_sums,
                           norm,
                           norm_backward,
                           categorical_loss,
                           expected_value,
                           adam,
                           lerp,
                           sum_of_squares,
                           all_finite,
                           narrow,
                           widen,
                           bytes_to_float};

} // namespace troupe::learner::TROUPE_KERNELS
