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

/// How the gradients of all replicas are combined.
enum class GradientOperation : std::uint8_t {
  mean,
  sum,
  adasum, // adaptive sum: from the mean of equal gradients to the sum of orthogonal ones
};

enum class CompressionKind : std::uint8_t { none, fp16, bf16, power_sgd, top_k };

/// The lossy encoding of gradients for transfer. With error feedback, the part lost in one step is
/// added to the gradient of the next step.
struct CompressionOptions {
  CompressionKind kind = CompressionKind::none;
  bool error_feedback = true;
  std::int64_t rank = 4;          // power_sgd: columns of the two factors
  std::int64_t min_elements = 64; // power_sgd: vectors and smaller tensors are sent uncompressed
  double fraction = 0.01;         // top_k: fraction of a bucket's elements to send, in (0, 1]
};

/// Compression state of one parameter on one replica. Tensors are undefined before their first use.
struct CompressionState {
  at::Tensor residual; // of the parameter's shape: what has not been sent yet
  at::Tensor factor;   // power_sgd: [columns, rank], initial value for the next step
};

/// Throws std::invalid_argument naming the option.
void check_compression(const CompressionOptions& options, GradientOperation operation);

/// The memory of one bucket: [gradients, tail], of one type. The tail holds small numbers that are
/// summed or averaged but never compressed. Readers only test whether they are above zero.
struct BucketMemory {
  at::Tensor flat;
  at::Tensor data;               // [elements] a view of `flat`
  at::Tensor tail;               // a view of `flat`
  std::vector<at::Tensor> views; // [member] views of `data`
};

/// Reduces one bucket over all replicas. Call start(), then finish(). Several buckets may be in
/// progress at the same time, in the same order on all replicas.
class BucketReduction {
public:
  virtual ~BucketReduction() = default;

  /// Starts the transfer. `now`: no other transfer is in progress and the caller will wait at once.
  virtual void start(bool now) = 0;
  /// Waits for the transfer. Afterwards `data` holds the reduced gradient, bit-equal on all
  /// replicas.
  virtual void finish() = 0;

  /// Sets a function that is called on any thread when the data of start() have arrived. Call this
  /// before start().
  void set_on_arrival(std::function<void()> callback) { on_arrival_ = std::move(callback); }

  virtual CompressionState state(std::size_t) const { return {}; } // of one member
  virtual void set_state(std::size_t, const CompressionState&) {}

protected:
  std::function<void()> on_arrival_;
};

std::unique_ptr<BucketReduction> make_bucket_reduction(BucketMemory memory,
                                                       collectives::Communicator& communicator,
                                                       GradientOperation operation,
                                                       const CompressionOptions& compression);

/// Adaptive summation of the replicas' vectors of one parameter, [replicas, elements] ->
/// [elements]. A pair a, b is combined to (1 - ab / 2aa) a + (1 - ab / 2bb) b, so that equal
/// gradients count once and orthogonal gradients are added. The results are combined in pairs
/// again, and so on. If the number of replicas is not a power of two, the surplus replicas are
/// combined with others first. (Maleki et al., "Scaling distributed training with adaptive
/// summation".)
at::Tensor adaptive_sum(const at::Tensor& rows);

} // namespace troupe::learner
