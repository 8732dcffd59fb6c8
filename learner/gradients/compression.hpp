#pragma once

#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "collectives/communicator.hpp"
#include "learner/gradients/bucket_reduction.hpp"

namespace troupe::learner {

/// One collective that may be under way. The replica's thread.
class PendingCollective {
public:
  explicit PendingCollective(collectives::Communicator& communicator);

  /// In place. `now`: waits; the shortest way for a single call.
  void all_reduce(at::Tensor& tensor, collectives::ReduceOp op, bool now,
                  const std::function<void()>& on_arrival = {});
  /// [replicas, elements of `tensor`], filled when wait() returns.
  at::Tensor all_gather(at::Tensor& tensor, const std::function<void()>& on_arrival = {});
  /// Throws CollectiveError.
  void wait();

private:
  void follow(c10::intrusive_ptr<c10d::Work> work, const std::function<void()>& on_arrival);

  collectives::Communicator& communicator_;
  c10::intrusive_ptr<c10d::Work> work_;
  std::function<void()> at_wait_;
};

/// For float32 and float64 buckets; `op` is the sum or the mean.
std::unique_ptr<BucketReduction> make_compressed_reduction(BucketMemory memory,
                                                           collectives::Communicator& communicator,
                                                           collectives::ReduceOp op,
                                                           const CompressionOptions& options);

} // namespace troupe::learner
