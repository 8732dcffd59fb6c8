#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner::transparent {

/// Averages the gradients of one optimizer over the ranks at its step, in flat buckets.
///
/// The program does not know about this class: after a backward pass it may run another one, or
/// clip, zero or read the gradients. So, unlike in learner::GradientBuckets, the gradients stay in
/// place until the step. While backward continues, each bucket whose gradients are ready is copied
/// and sent speculatively. At the step the ranks agree on the buckets in which any bit has changed
/// since, and send those again. If gradients change in kMostWasted steps, the program is assumed
/// always to change them, and everything is sent at the step from then on.
///
/// Early buckets use a separate channel, in the same order on all ranks, whatever the order in
/// which their gradients become ready. At most one thread may use this object at a time; backward
/// may run on other threads.
class GradientAverage {
public:
  static constexpr std::int64_t kBucketBytes = 1 << 20; // or one parameter
  static constexpr int kMostWasted = 3;

  /// Makes a second communicator of the same ranks. All ranks must call it. Returns null if no more
  /// are available.
  using MakeChannel = std::function<std::shared_ptr<collectives::Communicator>()>;

  /// `communicator` must outlive this object. `make_channel` is called once there are two buckets;
  /// if it is empty, nothing is sent early.
  GradientAverage(collectives::Communicator& communicator, MakeChannel make_channel,
                  std::int64_t bucket_bytes = kBucketBytes);
  ~GradientAverage();
  GradientAverage(const GradientAverage&) = delete;
  GradientAverage& operator=(const GradientAverage&) = delete;

  /// Sets the gradients to their mean over the ranks, or to rank 0's if `from_rank_0` (which must
  /// be equal on all ranks). A parameter without a gradient on some ranks counts as zero there; if
  /// it has no gradient on any rank, it keeps none. Sparse gradients become dense. Throws
  /// CollectiveError.
  void average(const std::vector<at::Tensor>& parameters, bool from_rank_0);

  /// Completes the transfers in progress, on all ranks. Throws CollectiveError.
  void drain();

  /// Whether it has made a second communicator, on which transfers may be in progress.
  bool has_channel() const { return channel_ != nullptr; }

  /// The number of buckets of the last average() that had been sent before it and were not sent
  /// again.
  std::int64_t sent_early() const { return sent_early_; }

private:
  struct Bucket;
  struct Hooks;
  class Hook;
  struct Place {
    std::size_t bucket = 0;
    std::size_t member = 0;
  };

  void follow(const std::vector<at::Tensor>& parameters);
  void on_gradient(std::size_t parameter, const at::Tensor& gradient);
  void send(Bucket& bucket);
  at::Tensor changed(const std::vector<at::Tensor>& parameters, std::size_t early,
                     bool from_rank_0);
  void begin_round();
  collectives::Communicator& carrier() const;

  collectives::Communicator& communicator_;
  MakeChannel make_channel_;
  std::shared_ptr<collectives::Communicator> channel_;
  std::int64_t bucket_bytes_;
  std::vector<const void*> identities_; // of the parameters for which the buckets are laid out
  std::vector<Place> places_;           // [parameter]
  std::vector<Bucket> buckets_;         // the last parameters first, as in backward
  std::shared_ptr<Hooks> hooks_;
  std::size_t next_ = 0; // the next bucket to send
  int wasted_ = 0;       // number of steps whose gradients changed
  std::int64_t sent_early_ = 0;
  std::exception_ptr failure_; // thrown while backward ran
};

} // namespace troupe::learner::transparent
