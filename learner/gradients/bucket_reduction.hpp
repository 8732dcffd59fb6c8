#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

/// How the replicas' gradients become one.
enum class GradientOperation : std::uint8_t {
  mean,
  sum,
  adasum, // adaptive summation: between the mean and the sum, by how far gradients agree
};

enum class CompressionKind : std::uint8_t { none, fp16, bf16, power_sgd, top_k };

/// What goes over the wire instead of the gradient. What is lost in one step is added to the
/// gradient of the next (error feedback).
struct CompressionOptions {
  CompressionKind kind = CompressionKind::none;
  bool error_feedback = true;
  std::int64_t rank = 4;          // power_sgd: columns of the two factors
  std::int64_t min_elements = 64; // power_sgd: smaller tensors, and vectors, go whole
  double fraction = 0.01;         // top_k: of a bucket's elements, (0, 1]
};

/// Of one parameter on one replica; tensors are undefined before their first use.
struct CompressionState {
  at::Tensor residual; // the parameter's shape: the part not sent to the others yet
  at::Tensor factor;   // power_sgd: [columns, rank], where the next step starts
};

/// Throws std::invalid_argument naming the option.
void check_compression(const CompressionOptions& options, GradientOperation operation);

/// The memory of one bucket: [gradients, tail] of one type. The tail is small numbers that are
/// summed or averaged exactly, never compressed; readers only test for "above zero".
struct BucketMemory {
  at::Tensor flat;
  at::Tensor data;               // [elements], into flat
  at::Tensor tail;               // into flat
  std::vector<at::Tensor> views; // [member] into data
};

/// Reduces one bucket over all replicas: start(), then finish(). Several buckets may be between the
/// two, on all replicas in the same order.
class BucketReduction {
public:
  virtual ~BucketReduction() = default;

  /// Sends. `now`: nothing else is under way, the caller waits at once.
  virtual void start(bool now) = 0;
  /// Waits; data then holds the common gradient, bit-equal on all replicas.
  virtual void finish() = 0;

  /// Called when the data of start() have arrived, on any thread; before start().
  void set_on_arrival(std::function<void()> callback) { on_arrival_ = std::move(callback); }

  virtual CompressionState state(std::size_t) const { return {}; } // of a member
  virtual void set_state(std::size_t, const CompressionState&) {}

protected:
  std::function<void()> on_arrival_;
};

std::unique_ptr<BucketReduction> make_bucket_reduction(BucketMemory memory,
                                                       collectives::Communicator& communicator,
                                                       GradientOperation operation,
                                                       const CompressionOptions& compression);

/// Adaptive summation of the replicas' vectors of one parameter, [replicas, elements] ->
/// [elements]: a pair's sum is (1 - ab / 2aa) a + (1 - ab / 2bb) b, so that equal gradients count
/// once and orthogonal ones add up; pairs of pairs and so on. A number that is no power of two: the
/// surplus is paired first. (Maleki et al., "Scaling distributed training with adaptive
/// summation".)
at::Tensor adaptive_sum(const at::Tensor& rows);

} // namespace troupe::learner
