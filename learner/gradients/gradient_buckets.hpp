#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/timeline.hpp"
#include "learner/gradients/bucket_reduction.hpp"

namespace troupe::learner {

struct GradientBucketsOptions {
  std::int64_t bucket_bytes = 1 << 20; // per bucket; the first buckets are smaller
  bool overlap = true;                 // reduce buckets during the backward pass
  bool keep_order = false;             // do not sort buckets by when gradients become ready
  GradientOperation operation = GradientOperation::mean;
  CompressionOptions compression;
  collectives::Timeline* timeline = nullptr; // must outlive this object
};

/// The result of a reduction, equal on all replicas.
struct GradientReport {
  std::int64_t not_finite = -1;        // first parameter with NaN or infinity; -1: none
  std::int64_t not_finite_count = 0;   // number of such parameters
  std::vector<int> not_finite_on;      // replicas with NaN or infinity in its bucket
  std::vector<int> stepping;           // replicas with gradients (all but those in join)
  std::vector<std::int64_t> with_none; // parameters without a gradient on any replica
};

/// Reduces the gradients of a replica's parameters over all replicas, in flat buckets. A bucket is
/// sent as soon as all of its gradients are complete, while backward computes the next ones. All
/// replicas send the buckets in the same order, and reduce() sends the rest. A parameter that some
/// replicas do not use therefore costs overlap but never causes a deadlock. The number of times
/// that backward accumulates into a parameter's gradient is learnt from the previous step. A
/// gradient that arrives after its bucket was sent is reduced in a second round.
///
/// Each gradient is copied once: when it has been computed it moves into its bucket, in the
/// parameter's own layout, and stays there. While a bucket is in transit, grad() of its parameters
/// is undefined.
///
/// All functions must be called from the replica's thread; gradients may become ready on autograd's
/// threads.
class GradientBuckets {
public:
  GradientBuckets(const std::vector<at::Tensor>& parameters,
                  collectives::Communicator& communicator, const GradientBucketsOptions& options);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Copies the parameters of replica 0 to all replicas.
  void broadcast_parameters();

  /// Allows complete gradients to be sent from now on, multiplied by `scale`.
  void arm(double scale);
  /// The implementation of zero_grad(): waits for buckets in transit and discards all gradients.
  void clear();
  /// Ends a micro-batch and resets the counts of ready gradients.
  void next_micro_batch();

  /// Reduces all gradients. Afterwards grad() is the reduced gradient, a view of its bucket, for
  /// every parameter that had a gradient on any replica, and undefined for the others. `stepping`:
  /// false contributes zeros. Throws CollectiveError.
  GradientReport reduce(double scale, bool stepping = true);

  /// Changes the layout of the buckets. Call this between reduce() and the next backward pass, on
  /// all replicas.
  void set_bucket_bytes(std::int64_t bytes);
  std::size_t size() const;
  std::int64_t sent_during_backward() const { return early_; } // buckets of the last reduce()

  /// The error feedback and warm starts of this replica, by parameter.
  std::vector<CompressionState> compression_state() const;
  void set_compression_state(const std::vector<CompressionState>& states);

private:
  struct Bucket;
  struct Hooks;
  struct Place {
    std::size_t bucket = 0;
    std::size_t member = 0;
  };

  void lay_out();
  void close_bucket(std::vector<std::size_t> members, std::int64_t elements);
  void on_gradient(std::size_t parameter);
  void take_in(std::size_t parameter);
  void launch(Bucket& bucket, bool now, bool stepping);
  void look_for_bad_on_device(Bucket& bucket);
  void finish(Bucket& bucket);
  void launch_rest(bool stepping);
  bool any_late() const;
  void late_round();
  void learn(bool hooked_anywhere, bool wasted_anywhere);
  void read(const Bucket& bucket, GradientReport& report) const;

  std::vector<at::Tensor> parameters_;
  collectives::Communicator& communicator_;
  GradientBucketsOptions options_;
  std::vector<std::size_t> order_; // the order of the parameters in the buckets
  std::vector<Place> places_;      // [parameter]
  std::vector<Bucket> buckets_;
  std::shared_ptr<Hooks> hooks_;

  std::mutex mutex_; // gradients may become ready on several threads
  std::vector<int> fires_;
  std::vector<int> expected_;      // [parameter] accumulations in the last step; or empty
  std::vector<std::size_t> ready_; // in order of accumulation, until expected_ is known
  std::size_t next_ = 0;           // the next bucket to be sent
  bool armed_ = false;
  bool overlap_ = false;
  bool wasted_ = false; // gradients were computed for another optimizer's loss and discarded
  double scale_ = 1;
  std::int64_t early_ = 0;
};

} // namespace troupe::learner
