#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/communicator.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

/// Named tensors, sorted by name: a batch, the outputs of a step, a state to save.
using TensorMap = std::map<std::string, at::Tensor>;
/// Scalars of one step for the curves: "critic_loss" -> 1.5.
using Metrics = std::map<std::string, double>;

/// What a replica's input pipeline is told, as in tf.distribute.
struct InputContext {
  int num_replicas_in_sync = 1;
  int input_pipeline_id = 0;
  int num_input_pipelines = 1;

  /// Throws std::invalid_argument naming both numbers when the global batch does not divide.
  std::int64_t per_replica_batch_size(std::int64_t global_batch_size) const;
};

/// A stream of batches. `next` may block until its own deadline; an empty map is the end of the
/// data.
using Input = std::function<TensorMap()>;

class WrappedOptimizer;

/// What step_fn may ask of the other replicas. Valid on the thread of its replica only.
class ReplicaContext {
public:
  /// `communicator` may be null for a single replica and must outlive this.
  explicit ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed = 0,
                          at::Device device = at::kCPU);

  int replica_id() const;
  int num_replicas_in_sync() const;
  std::uint64_t seed() const { return seed_; } // of this replica, split from the run's seed
  at::Device device() const { return device_; }

  void all_reduce(at::Tensor& tensor, collectives::ReduceOp op = collectives::ReduceOp::mean);
  void all_reduce(TensorMap& tensors,
                  collectives::ReduceOp op = collectives::ReduceOp::mean); // one flat call
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor);
  void broadcast(at::Tensor& tensor, int root = 0);
  std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out);
  void barrier();
  collectives::Communicator* communicator() { return communicator_; }

  /// Averages the gradients of `parameters` over the replicas (bucketed, one flat all_reduce per
  /// bucket) before each optimizer step, and broadcasts the parameters from replica 0 once, now.
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);

private:
  collectives::Communicator* communicator_;
  std::uint64_t seed_;
  at::Device device_;
};

/// What a researcher writes: a training computation that runs unchanged on one device or many.
class Replica {
public:
  virtual ~Replica() = default;

  /// Builds networks and optimizers. Called once on the replica's thread, before anything else.
  virtual void build(ReplicaContext& context) = 0;
  virtual Input input_fn(const InputContext& context) = 0;
  virtual Metrics step_fn(ReplicaContext& context, const TensorMap& batch) = 0;

  /// Parameters, optimizer moments, counters and random states by name: all that a resumed run
  /// needs. Tensors may alias the live ones.
  virtual TensorMap parameters() = 0;
  virtual TensorMap optimizer_state() = 0;
  virtual void load(const TensorMap& parameters, const TensorMap& optimizer_state) = 0;

  /// What each row of the last step_fn's batch is worth being sampled again: its error, float64
  /// [batch] on the CPU, not negative. Empty when the workload has none.
  virtual at::Tensor priorities() { return {}; }

  /// The acting policy as one flat float32 tensor, for publication; empty when the workload has
  /// none.
  virtual at::Tensor policy_parameters() { return {}; }
};

} // namespace troupe::learner
