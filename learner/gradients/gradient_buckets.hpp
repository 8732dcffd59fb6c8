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
  std::int64_t bucket_bytes = 1 << 20; // of a bucket; the first ones are smaller
  bool overlap = true;                 // reduce while backward runs
  bool keep_order = false;             // do not sort the buckets by when gradients become ready
  GradientOperation operation = GradientOperation::mean;
  CompressionOptions compression;
  collectives::Timeline* timeline = nullptr; // outlives this
};

/// What all replicas know after a reduction, the same on each.
struct GradientReport {
  std::int64_t not_finite = -1;        // the first parameter with NaN or infinity; -1: none
  std::int64_t not_finite_count = 0;   // how many have
  std::vector<int> not_finite_on;      // these replicas, of its bucket
  std::vector<int> stepping;           // replicas that brought gradients (all but those in join)
  std::vector<std::int64_t> with_none; // parameters that have a gradient nowhere
};

/// The gradients of a replica's parameters, reduced over the replicas in flat buckets. A bucket is
/// sent as soon as all of its gradients are there, while backward computes the next ones; buckets
/// are sent in one order everywhere, and what is not ready at reduce() is sent then: a parameter
/// that some replicas do not use costs overlap, never a hang. How often a parameter's gradient is
/// added to before it is whole is learnt from the step before; if more comes after its bucket was
/// sent, a second round brings it.
///
/// One copy: a gradient moves into its bucket when it is computed, in the parameter's own layout,
/// and stays there. While a bucket is under way grad() of its parameters is undefined.
///
/// The replica's thread calls everything; gradients may become ready on threads of autograd's.
class GradientBuckets {
public:
  GradientBuckets(const std::vector<at::Tensor>& parameters,
                  collectives::Communicator& communicator, const GradientBucketsOptions& options);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Of replica 0, to all.
  void broadcast_parameters();

  /// From now on gradients that become whole may be sent, times `scale`.
  void arm(double scale);
  /// zero_grad(): gradients are forgotten; waits for what is under way.
  void clear();
  /// Ends a micro-batch: the counts of ready gradients start again.
  void next_micro_batch();

  /// Afterwards grad() of every parameter that had a gradient anywhere is the common one, a view of
  /// its bucket; of the others undefined. `stepping`: false contributes zeros. Throws
  /// CollectiveError.
  GradientReport reduce(double scale, bool stepping = true);

  /// Rearranges the buckets: between reduce() and the next backward, on all replicas.
  void set_bucket_bytes(std::int64_t bytes);
  std::size_t size() const;
  std::int64_t sent_during_backward() const { return early_; } // buckets of the last reduce()

  /// Error feedback and warm starts, by parameter, of this replica.
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
  std::vector<std::size_t> order_; // of the parameters over the buckets
  std::vector<Place> places_;      // [parameter]
  std::vector<Bucket> buckets_;
  std::shared_ptr<Hooks> hooks_;

  std::mutex mutex_; // gradients may become ready on several threads
  std::vector<int> fires_;
  std::vector<int> expected_;      // [parameter] of the last step; empty: not learnt
  std::vector<std::size_t> ready_; // as autograd added to them, until expected_ is learnt
  std::size_t next_ = 0;           // bucket to be sent
  bool armed_ = false;
  bool overlap_ = false;
  bool wasted_ = false; // gradients were computed and forgotten: for another optimizer's loss
  double scale_ = 1;
  std::int64_t early_ = 0;
};

} // namespace troupe::learner
