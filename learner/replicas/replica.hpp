#pragma once

#include <ATen/core/Tensor.h>

#include "learner/metrics.hpp"
#include "learner/replicas/input.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

/// A training computation, written by a researcher, that runs unchanged on one device or many.
class Replica {
public:
  virtual ~Replica() = default;

  /// Builds networks and optimizers. Called once, on the replica's thread, before any other member
  /// function.
  virtual void build(ReplicaContext& context) = 0;
  virtual Input input_fn(const InputContext& context) = 0;
  virtual Metrics step_fn(ReplicaContext& context, const TensorMap& batch) = 0;

  /// parameters() and optimizer_state() return, by name, all that a resumed run needs: parameters,
  /// optimizer moments, counters and random states. Tensors may alias the live ones. Entries named
  /// "random.…" belong to this replica and must not be loaded into another.
  virtual TensorMap parameters() = 0;
  virtual TensorMap optimizer_state() = 0;
  virtual void load(const TensorMap& parameters, const TensorMap& optimizer_state) = 0;

  /// Returns metrics on held-out data, e.g. "top1" -> 0.93. All replicas in sync call it together,
  /// between two steps, and every row counts once. Returns an empty map if the workload is
  /// evaluated elsewhere.
  virtual Metrics evaluate(ReplicaContext&) { return {}; }

  /// Returns images for people to look at, {name: uint8 [3, height, width]} on the CPU. Called on
  /// replica 0 after evaluate().
  virtual TensorMap pictures() { return {}; }

  /// Returns the priorities of the rows of the last step_fn() batch: their errors, float64 [batch]
  /// on the CPU, non-negative. Returns an undefined tensor if the workload has none.
  virtual at::Tensor priorities() { return {}; }

  /// Estimates the discounted returns that follow a batch's actions, [batch]. Returns an undefined
  /// tensor if the workload has no such estimate. `batch` has the "observation" and "action" of
  /// replay's transitions. Must not change any state that updates depend on.
  virtual at::Tensor action_values(const TensorMap& /*batch*/) { return {}; }

  /// Returns the acting policy as one flat float32 tensor, for publication, or an undefined tensor
  /// if the workload has none.
  virtual at::Tensor policy_parameters() { return {}; }
};

} // namespace troupe::learner
