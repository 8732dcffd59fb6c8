#pragma once

#include <cstdint>

namespace troupe::learner {

/// Rows of the right factor that `multiply` processes at once: it divides k into the fewest equal
/// parts of at most this size.
constexpr std::int64_t kProductBlock = 256;

/// The activation after a LayerNorm.
enum class AfterNorm : std::uint8_t { none, elu, relu, tanh };

/// Where the column sums of a norm's gradients are added, [n] each. gain and shift may both be
/// null, and bias, for the gradient of x.
struct NormSums {
  float* gain = nullptr;
  float* shift = nullptr;
  float* bias = nullptr;
};

/// A norm whose results are kept in bfloat16: y = after(layer_norm(x) * gain + shift).
struct HalfNorm {
  AfterNorm after;
  const float* gain;
  const float* shift;
  std::uint16_t* kept;   // [m, n], the normalised x
  float* inverse;        // [m], 1 / sigma
  float* y;              // [m, n], or null
  std::uint16_t* half_y; // rows are half_row elements apart; null if y is not
  std::int64_t half_row;
};

/// Float32 arithmetic for small networks on one thread. It is compiled once per instruction set,
/// and the processor determines which table is used. Matrices are row-major, and dense unless a
/// stride is passed. No function allocates, throws or treats NaN specially: NaN inputs give NaN
/// outputs.
struct KernelTable {
  const char* name; // "avx512bf16", "avx512", "avx2", "baseline"
  std::int64_t panel_columns;

  /// Packs b[k, n] (element strides b_row, b_column) into panels for `multiply`;
  /// packed: k * roundup(n, panel_columns) floats.
  void (*pack)(const float* b, std::int64_t b_row, std::int64_t b_column, std::int64_t k,
               std::int64_t n, float* packed);
  /// c[m, n] = a[m, k] * b (+ bias[n] if not null, + c if accumulate). The order of an element's
  /// additions does not depend on m, so rows may be split over threads without changing a bit.
  void (*multiply)(const float* a, std::int64_t a_row, std::int64_t a_column, const float* packed,
                   const float* bias, bool accumulate, float* c, std::int64_t c_row, std::int64_t m,
                   std::int64_t n, std::int64_t k);

  /// out[m] = a[m, k] * b[k] + bias[0]
  void (*column_product)(const float* a, const float* b, const float* bias, float* out,
                         std::int64_t m, std::int64_t k);
  /// sums[k] = sum over the rows of a[m, k], times weight[m]
  void (*weighted_sum)(const float* a, const float* weight, float* sums, std::int64_t m,
                       std::int64_t k);

  void (*elu)(float* x, std::int64_t count);
  void (*relu)(float* x, std::int64_t count);
  void (*tanh)(const float* x, float* y, std::int64_t count);
  /// gradient[m, n] *= f'(y); bias_gradient[n] = column sums (skipped if null).
  void (*elu_backward)(const float* y, float* gradient, float* bias_gradient, std::int64_t m,
                       std::int64_t n);
  void (*relu_backward)(const float* y, float* gradient, float* bias_gradient, std::int64_t m,
                        std::int64_t n);
  void (*column_sums)(const float* x, float* sums, std::int64_t m, std::int64_t n);
  /// y = after(layer_norm(x) * gain + shift); x becomes the normalised x; inverse[m] = 1 / sigma.
  void (*norm)(AfterNorm after, float* x, const float* gain, const float* shift, float* y,
               float* inverse, std::int64_t m, std::int64_t n);
  /// gradient[m, n] is that of y on input, and that of x on output.
  void (*norm_backward)(AfterNorm after, const float* y, const float* normalised,
                        const float* inverse, const float* gain, float* gradient, NormSums sums,
                        std::int64_t m, std::int64_t n);
  /// Writes y, half_y or both. Rounds what norm() computes.
  void (*half_norm)(const HalfNorm& norm, const float* x, std::int64_t m, std::int64_t n);
  /// Reads half_y unless it is null. `half` receives the gradient of x too; its rows are half_row
  /// elements apart.
  void (*half_norm_backward)(const HalfNorm& norm, float* gradient, std::uint16_t* half,
                             std::int64_t half_row, NormSums sums, std::int64_t m, std::int64_t n);

  /// Categorical critic loss: writes gradient[m, atoms] of the mean cross entropy between the
  /// projected target distribution and softmax(logits). Row i has weight[i] (null: 1). Its
  /// unweighted loss is written to row_losses[i] (null: not wanted). scratch: 2 * (atoms + 32)
  /// floats. Returns the weighted sum of the row losses.
  double (*categorical_loss)(const float* target_logits, const float* reward, const float* discount,
                             const float* weight, const float* logits, float* gradient,
                             float* row_losses, float* scratch, float minimum, float maximum,
                             float reward_scale, std::int64_t m, std::int64_t atoms);
  /// Writes gradient[m, atoms] of -mean(Q), Q = sum softmax(logits) * atoms. Returns the sum of Q.
  double (*expected_value)(const float* logits, float* gradient, float minimum, float maximum,
                           std::int64_t m, std::int64_t atoms);

  /// Rows of x, target, logits and gradient begin `…_row` elements apart. Row i has weight[i] in
  /// the gradient; row_losses are without weights.
  /// row_losses[m] = sum of (x - target)^2; gradient[m, n] is the derivative of its product with
  /// scale * weight.
  void (*squared_error)(const float* x, std::int64_t x_row, const float* target,
                        std::int64_t target_row, const float* weight, float scale, float* gradient,
                        std::int64_t gradient_row, float* row_losses, std::int64_t m,
                        std::int64_t n);
  /// The same for the cross entropy of softmax(logits) with the distributions `wanted` [m, n].
  void (*softmax_error)(const float* logits, std::int64_t logits_row, const float* wanted,
                        const float* weight, float scale, float* gradient,
                        std::int64_t gradient_row, float* row_losses, std::int64_t m,
                        std::int64_t n);
  /// half[m, n] = x / lengths in bfloat16, where lengths[m] are the rows' norms, at least 1e-8.
  void (*unit_rows)(const float* x, std::int64_t x_row, std::uint16_t* half, float* lengths,
                    std::int64_t m, std::int64_t n);
  /// row_losses[m] = cross entropy of softmax(logits[m, n] * sharpness), where column i % n is
  /// right for row i. The logits become softmax minus the right column, times weight[m]. scratch: n
  /// floats.
  void (*contrast)(std::uint16_t* logits, float sharpness, const float* weight, float* scratch,
                   float* row_losses, std::int64_t m, std::int64_t n);
  /// Adds the gradient of x to `gradient`, given that of the `half` of unit_rows().
  void (*unit_rows_backward)(const std::uint16_t* of_half, const float* x, std::int64_t x_row,
                             const float* lengths, float* gradient, std::int64_t gradient_row,
                             std::int64_t m, std::int64_t n);

  /// squashed_sample() and squashed_gradient() of squashed_gaussian.hpp; raw and gradient: [m, 2
  /// n].
  void (*squashed_sample)(const float* raw, const float* noise, float* action,
                          float* log_probability, std::int64_t m, std::int64_t n);
  void (*squashed_gradient)(const float* raw, const float* noise, const float* action,
                            const float* action_gradient, float weight, float* gradient,
                            std::int64_t m, std::int64_t n);

  /// Multiplies the parameters by `decay` before the step.
  void (*adam)(float* parameter, const float* gradient, float* mean, float* square,
               std::int64_t count, float scale, float decay, float rate, float beta1, float beta2,
               float inverse_correction2, float epsilon);
  void (*lerp)(float* target, const float* source, float weight, std::int64_t count);
  double (*sum_of_squares)(const float* x, std::int64_t count);
  bool (*all_finite)(const float* x, std::int64_t count);
  /// Rounds each number to the nearest bfloat16, stored as bits.
  void (*narrow)(const float* x, std::uint16_t* out, std::int64_t count);
  /// out[m, n] = x, converted from bfloat16, + bias[n] if not null.
  void (*widen)(const std::uint16_t* x, const float* bias, float* out, std::int64_t m,
                std::int64_t n);
  /// out = in * scale + offset
  void (*bytes_to_float)(const std::uint8_t* in, float* out, std::int64_t count, float scale,
                         float offset);
};

/// Returns the fastest table that this processor can run.
const KernelTable& kernel_table();
/// Returns the table of this name, or null if this build or processor lacks it.
const KernelTable* kernel_table(const char* name);

} // namespace troupe::learner
