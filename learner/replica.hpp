#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/communicator.hpp"
#include "collectives/timeline.hpp"

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

class UpdateRule;
class WrappedOptimizer;
struct WrappedOptimizerOptions;

/// Makes the rule of a replica's wrapped optimizer number `optimizer`, counted from 0.
using UpdateRuleFactory = std::function<std::unique_ptr<UpdateRule>(int optimizer)>;

/// Where a strategy puts a replica. The pointers outlive the replica's context.
struct ReplicaSeat {
  int replica_id = 0;   // among all replicas of the program
  int num_replicas = 1; // of the program
  int sync_group = 0;   // whose replicas step together
  int num_sync_groups = 1;
  collectives::Communicator* communicator = nullptr; // of the sync group; null for one replica
  UpdateRuleFactory update_rule = {}; // empty: gradients are averaged over the sync group, the
                                      // optimizer steps on every replica
  collectives::Timeline* timeline = nullptr; // of this replica; null: nothing is recorded
};

/// What step_fn may ask of the other replicas. Valid on the thread of its replica only.
class ReplicaContext {
public:
  /// `communicator` may be null for a single replica and must outlive this.
  explicit ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed = 0,
                          at::Device device = at::kCPU);
  explicit ReplicaContext(ReplicaSeat seat, std::uint64_t seed = 0, at::Device device = at::kCPU);

  int replica_id() const { return seat_.replica_id; }
  int num_replicas() const { return seat_.num_replicas; }
  int sync_group() const { return seat_.sync_group; }
  int num_sync_groups() const { return seat_.num_sync_groups; }
  int num_replicas_in_sync() const;            // of the sync group
  std::uint64_t seed() const { return seed_; } // of this replica, split from the run's seed
  at::Device device() const { return device_; }

  void all_reduce(at::Tensor& tensor, collectives::ReduceOp op = collectives::ReduceOp::mean);
  void all_reduce(TensorMap& tensors,
                  collectives::ReduceOp op = collectives::ReduceOp::mean); // one flat call
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor);
  void broadcast(at::Tensor& tensor, int root = 0);
  std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out);
  void barrier();
  collectives::Communicator* communicator() { return seat_.communicator; }
  collectives::Timeline* timeline() { return seat_.timeline; } // null: not recorded

  /// An optimizer whose step() is the strategy's: gradients averaged over the replicas, or sent to
  /// parameter servers, … Makes the replicas' parameters alike, now.
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                 const WrappedOptimizerOptions& options);

private:
  ReplicaSeat seat_;
  int optimizers_ = 0; // wrapped so far
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
