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

/// The gradients of one optimizer, averaged over the ranks at its step, in flat buckets.
///
/// The program knows nothing of this: after a backward pass it may make another one, clip, zero or
/// read what it finds. So its gradients stay where they are until the step, unlike in
/// learner::GradientBuckets. A bucket whose gradients backward has made is copied and sent while
/// backward goes on, on suspicion; at the step the ranks tell each other what has changed since,
/// bit for bit, and that is sent again. A program that changes gradients in kMostWasted steps is
/// one that always does: from then on all is sent at the step.
///
/// What is sent early goes over a channel of its own, in one order of buckets on all ranks however
/// their gradients become ready. One thread at a time; backward may run on others.
class GradientAverage {
public:
  static constexpr std::int64_t kBucketBytes = 1 << 20; // or one parameter
  static constexpr int kMostWasted = 3;

  /// Makes a second communicator of the same ranks; all of them call it. Null: nothing more to be
  /// had.
  using MakeChannel = std::function<std::shared_ptr<collectives::Communicator>()>;

  /// `communicator` outlives this. `make_channel` is called once there are two buckets; left out:
  /// nothing is sent early.
  GradientAverage(collectives::Communicator& communicator, MakeChannel make_channel,
                  std::int64_t bucket_bytes = kBucketBytes);
  ~GradientAverage();
  GradientAverage(const GradientAverage&) = delete;
  GradientAverage& operator=(const GradientAverage&) = delete;

  /// Sets the gradients to their mean over the ranks, or to rank 0's (`from_rank_0`, equal on all).
  /// A parameter without a gradient on some ranks counts as zero there; without one anywhere it
  /// keeps none. Sparse gradients become dense. Throws CollectiveError.
  void average(const std::vector<at::Tensor>& parameters, bool from_rank_0);

  /// Ends what is under way, on all ranks. Throws CollectiveError.
  void drain();

  /// Buckets of the last average() that had been sent before it and were not sent again.
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
  std::vector<const void*> identities_; // of the parameters that the buckets are laid out for
  std::vector<Place> places_;           // [parameter]
  std::vector<Bucket> buckets_;         // the last parameters first: backward comes to them first
  std::shared_ptr<Hooks> hooks_;
  std::size_t next_ = 0; // bucket to be sent
  int wasted_ = 0;       // steps
  std::int64_t sent_early_ = 0;
  std::exception_ptr failure_; // while backward ran
};

} // namespace troupe::learner::transparent
