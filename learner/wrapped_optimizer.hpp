#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}
namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

class UpdateRule;

struct WrappedOptimizerOptions {
  std::int64_t bucket_bytes = 1 << 20; // of one flat all_reduce
  double max_gradient_norm = 0;        // global L2 norm of the averaged gradients; 0: no clipping
};

/// An optimizer whose gradients are the mean over all replicas. All replicas construct and step it
/// in the same order. With one replica (a null communicator, or one of size 1) nothing is averaged
/// and nothing copied. One thread, the replica's own. Made by ReplicaContext::wrap_optimizer.
///
/// A parameter that has a gradient on some replicas only counts as zero on the others; one that has
/// none anywhere keeps none. After step() the gradients are the averaged, clipped ones (views of
/// flat buffers that the next step() reuses).
class WrappedOptimizer {
public:
  /// Broadcasts the parameters of replica 0. Throws CollectiveError, and std::invalid_argument for
  /// options out of range or an optimizer without parameters.
  WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                   collectives::Communicator* communicator,
                   const WrappedOptimizerOptions& options = {});
  /// With a rule, which makes the parameters alike and gets this replica's own gradients, clipped,
  /// instead of their being averaged. A null rule is none.
  WrappedOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                   collectives::Communicator* communicator, const WrappedOptimizerOptions& options,
                   std::unique_ptr<UpdateRule> rule);
  ~WrappedOptimizer();

  void zero_grad();

  /// Average, clip, update. Throws CollectiveError, and std::runtime_error naming the parameter
  /// when a gradient is not finite; the parameters are then as they were.
  void step();

  /// Global L2 norm of the averaged gradients of the last step(), before clipping.
  double gradient_norm() const { return gradient_norm_; }
  void set_max_gradient_norm(double norm);

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

private:
  struct Bucket;

  void add_bucket(std::size_t first, std::size_t count, std::int64_t elements);
  void broadcast_parameters();
  void average_gradients();
  void measure_and_clip();
  [[noreturn]] void throw_not_finite() const;

  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<UpdateRule> rule_;        // null: synchronous
  collectives::Communicator* communicator_; // null for a single replica
  WrappedOptimizerOptions options_;
  std::vector<at::Tensor> parameters_; // in the optimizer's order
  std::vector<Bucket> buckets_;
  double gradient_norm_ = 0;
};

} // namespace troupe::learner
