#pragma once

#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "collectives/communicator.hpp"
#include "learner/gradients/bucket_reduction.hpp"

namespace troupe::learner {

/// A collective that may still be in progress. Only the replica's thread may use it.
class PendingCollective {
public:
  explicit PendingCollective(collectives::Communicator& communicator);

  /// Reduces `tensor` in place. `now`: waits for the result, which is the fastest way to make a
  /// single call.
  void all_reduce(at::Tensor& tensor, collectives::ReduceOp op, bool now,
                  const std::function<void()>& on_arrival = {});
  /// Returns [replicas, elements of `tensor`], which is filled when wait() returns.
  at::Tensor all_gather(at::Tensor& tensor, const std::function<void()>& on_arrival = {});
  /// Waits for the collective. Throws CollectiveError.
  void wait();

private:
  void follow(c10::intrusive_ptr<c10d::Work> work, const std::function<void()>& on_arrival);

  collectives::Communicator& communicator_;
  c10::intrusive_ptr<c10d::Work> work_;
  std::function<void()> at_wait_;
};

/// For float32 and float64 buckets; `op` must be the sum or the mean.
std::unique_ptr<BucketReduction> make_compressed_reduction(BucketMemory memory,
                                                           collectives::Communicator& communicator,
                                                           collectives::ReduceOp op,
                                                           const CompressionOptions& options);

} // namespace troupe::learner
