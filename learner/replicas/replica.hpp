#pragma once

#include <ATen/core/Tensor.h>

#include "learner/metrics.hpp"
#include "learner/replicas/input.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// What a researcher writes: a training computation that runs unchanged on one device or many.
class Replica {
public:
  virtual ~Replica() = default;

  /// Builds networks and optimizers. Called once on the replica's thread, before anything else.
  virtual void build(ReplicaContext& context) = 0;
  virtual Input input_fn(const InputContext& context) = 0;
  virtual Metrics step_fn(ReplicaContext& context, const TensorMap& batch) = 0;

  /// Parameters, optimizer moments, counters and random states by name: all that a resumed run
  /// needs. Tensors may alias the live ones. Entries named "random.…" belong to this replica and
  /// must not be loaded into another.
  virtual TensorMap parameters() = 0;
  virtual TensorMap optimizer_state() = 0;
  virtual void load(const TensorMap& parameters, const TensorMap& optimizer_state) = 0;

  /// Metrics on held-out data: "top1" -> 0.93. A collective of the replicas in sync, between two
  /// steps; every row counts once. Empty if the workload is measured elsewhere.
  virtual Metrics evaluate(ReplicaContext&) { return {}; }

  /// Pictures for people, from replica 0 after evaluate(): {name: uint8 [3, height, width]} on the
  /// CPU.
  virtual TensorMap pictures() { return {}; }

  /// Priorities of the rows of the last step_fn's batch: their errors, float64 [batch] on the CPU,
  /// not negative. Undefined if the workload has none.
  virtual at::Tensor priorities() { return {}; }

  /// The workload's estimates of the discounted returns that follow a batch's actions, [batch];
  /// undefined if it has none. `batch` has the "observation" and "action" of replay's transitions.
  /// Changes nothing that updates depend on.
  virtual at::Tensor action_values(const TensorMap& /*batch*/) { return {}; }

  /// The acting policy as one flat float32 tensor, for publication; undefined if the workload has
  /// none.
  virtual at::Tensor policy_parameters() { return {}; }
};

} // namespace troupe::learner
