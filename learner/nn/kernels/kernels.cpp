// Compiled once per instruction set with TROUPE_KERNELS naming the namespace (see CMakeLists.txt).
#include "learner/nn/kernels/kernel_table.hpp"

#include "learner/nn/kernels/layer_norm.hpp"
#include "learner/nn/kernels/loss_kernels.hpp"
#include "learner/nn/kernels/matrix_kernel.hpp"
#include "learner/nn/kernels/vector_loops.hpp"

namespace troupe::learner::TROUPE_KERNELS {
namespace {

void column_product(const float* a, const float* b, const float* bias, float* out, Index m,
                    Index k) {
  for (Index i = 0; i < m; ++i, a += k)
    out[i] = bias[0]
             + sum_of(k, [=](Index j, Index part) { return get(a + j, part) * get(b + j, part); });
}

void weighted_sum(const float* a, const float* weight, float* sums, Index m, Index k) {
  each(k, [=](Index j, Index part) {
    Vector total = {};
    for (Index i = 0; i < m; ++i)
      total += get(a + i * k + j, part) * weight[i];
    put(sums + j, total, part);
  });
}

void elu(float* x, Index count) {
  each(count, [=](Index i, Index part) { put(x + i, elu_of(get(x + i, part)), part); });
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
                           column_product,
                           weighted_sum,
                           elu,
                           relu,
                           tanh,
                           elu_backward,
                           relu_backward,
                           column_sums,
                           norm,
                           norm_backward,
                           half_norm,
                           half_norm_backward,
                           categorical_loss,
                           expected_value,
                           squared_error,
                           softmax_error,
                           unit_rows,
                           contrast,
                           unit_rows_backward,
                           squashed_sample,
                           squashed_gradient,
                           adam,
                           lerp,
                           sum_of_squares,
                           all_finite,
                           narrow,
                           widen,
                           bytes_to_float};

} // namespace troupe::learner::TROUPE_KERNELS
