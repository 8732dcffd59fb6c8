#pragma once

#include <cstdint>

namespace troupe::learner {

/// Rows of a right factor that `multiply` goes through at once: k is cut into the fewest equal
/// parts of at most so many.
constexpr std::int64_t kProductBlock = 256;

/// What follows a LayerNorm.
enum class AfterNorm : std::uint8_t { none, elu, relu, tanh };

/// Float32 arithmetic of small networks on one thread, compiled once per instruction set and chosen
/// by the processor. Matrices are row-major and dense unless a stride is passed. Nothing here
/// allocates, throws or looks at NaN specially: a NaN in gives a NaN out.
struct KernelTable {
  const char* name; // "avx512", "avx2", "baseline"
  std::int64_t panel_columns;

  /// Packs b[k, n] (element strides b_row, b_column) into panels for `multiply`;
  /// packed: k * roundup(n, panel_columns) floats.
  void (*pack)(const float* b, std::int64_t b_row, std::int64_t b_column, std::int64_t k,
               std::int64_t n, float* packed);
  /// c[m, n] = a[m, k] * b (+ bias[n] when not null, + c when accumulate). The order of additions
  /// of an element does not depend on m: rows may be split over threads without changing a bit.
  void (*multiply)(const float* a, std::int64_t a_row, std::int64_t a_column, const float* packed,
                   const float* bias, bool accumulate, float* c, std::int64_t c_row, std::int64_t m,
                   std::int64_t n, std::int64_t k);

  void (*elu)(float* x, std::int64_t count);
  void (*relu)(float* x, std::int64_t count);
  void (*tanh)(const float* x, float* y, std::int64_t count);
  /// gradient[m, n] *= f'(y); bias_gradient[n] = column sums (skipped when null).
  void (*elu_backward)(const float* y, float* gradient, float* bias_gradient, std::int64_t m,
                       std::int64_t n);
  void (*relu_backward)(const float* y, float* gradient, float* bias_gradient, std::int64_t m,
                        std::int64_t n);
  void (*column_sums)(const float* x, float* sums, std::int64_t m, std::int64_t n);
  /// y = after(layer_norm(x) * gain + shift); x becomes the normalised x; inverse[m] = 1 / sigma.
  void (*norm)(AfterNorm after, float* x, const float* gain, const float* shift, float* y,
               float* inverse, std::int64_t m, std::int64_t n);
  /// gradient[m, n]: of y in, of x out. gain_gradient and shift_gradient [n] are written unless
  /// both are null, bias_gradient [n], the column sums of the gradient of x, unless it is null.
  void (*norm_backward)(AfterNorm after, const float* y, const float* normalised,
                        const float* inverse, const float* gain, float* gradient,
                        float* gain_gradient, float* shift_gradient, float* bias_gradient,
                        std::int64_t m, std::int64_t n);

  /// Categorical critic loss: gradient[m, atoms] of the mean cross entropy between the projected
  /// target distribution and softmax(logits). Row i counts weight[i] times (null: once); its own
  /// loss, unweighted, goes to row_losses[i] (null: nowhere). scratch: 2 * (atoms + 32) floats.
  /// Returns the weighted sum of the row losses.
  double (*categorical_loss)(const float* target_logits, const float* reward, const float* discount,
                             const float* weight, const float* logits, float* gradient,
                             float* row_losses, float* scratch, float minimum, float maximum,
                             float reward_scale, std::int64_t m, std::int64_t atoms);
  /// gradient[m, atoms] of -mean(Q), Q = sum softmax(logits) * atoms. Returns the sum of Q.
  double (*expected_value)(const float* logits, float* gradient, float minimum, float maximum,
                           std::int64_t m, std::int64_t atoms);

  /// The parameters are multiplied by `decay` before the step.
  void (*adam)(float* parameter, const float* gradient, float* mean, float* square,
               std::int64_t count, float scale, float decay, float rate, float beta1, float beta2,
               float inverse_correction2, float epsilon);
  void (*lerp)(float* target, const float* source, float weight, std::int64_t count);
  double (*sum_of_squares)(const float* x, std::int64_t count);
  bool (*all_finite)(const float* x, std::int64_t count);
  /// The nearest bfloat16 of each number, as bits.
  void (*narrow)(const float* x, std::uint16_t* out, std::int64_t count);
  /// out[m, n] = x, of bfloat16, + bias[n] when not null.
  void (*widen)(const std::uint16_t* x, const float* bias, float* out, std::int64_t m,
                std::int64_t n);
  /// out = in * scale + offset
  void (*bytes_to_float)(const std::uint8_t* in, float* out, std::int64_t count, float scale,
                         float offset);
};

/// The fastest table this processor can run.
const KernelTable& kernel_table();
/// "avx512", "avx2" or "baseline"; null when this build or processor has it not.
const KernelTable* kernel_table(const char* name);

} // namespace troupe::learner
