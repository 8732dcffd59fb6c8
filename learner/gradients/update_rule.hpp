#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learner/metrics.hpp"
#include "learner/tensor_map.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

/// How a wrapped optimizer turns gradients into an update. Each strategy has its own rule. Each
/// wrapped optimizer of each replica has one, which is used on the replica's thread. All replicas
/// must wrap their optimizers in the same order, because the n-th ones belong together.
class UpdateRule {
public:
  virtual ~UpdateRule() = default;

  /// Called once, before the first step. Makes the parameters of all replicas equal, in place.
  /// `optimizer` and its parameters must outlive this object.
  virtual void begin(torch::optim::Optimizer& optimizer,
                     const std::vector<at::Tensor>& parameters) = 0;

  /// Called with the gradients (accumulated, clipped, finite) in grad() of the parameters. Writes
  /// the values for the next forward pass to the parameters. If no parameter has a gradient, the
  /// gradients of this replica were not finite and do not count; it takes part only so that the
  /// other replicas do not wait for it. Throws CollectiveError or std::runtime_error naming the
  /// failed replica.
  virtual void update() = 0;

  /// Number of updates that the parameters have received since the previous update(). It is 1 if
  /// replicas wait for each other. Otherwise the updates of other replicas count too, and it may be
  /// 0 if a gradient was dropped.
  virtual std::int64_t updates_applied() const { return 1; }

  /// Makes the other replicas stop waiting for this one until it calls update() again.
  virtual void suspend_participation() {}

  /// Called after a checkpoint was loaded into the parameters. If the parameters are held
  /// elsewhere, for example by servers, those values replace the loaded ones.
  virtual void on_parameters_restored() {}

  /// Returns what a resumed run needs of this rule, as part of WrappedOptimizer::state() and of
  /// ReplicaContext::rule_state().
  virtual TensorMap state() { return {}; }
  /// Loads one of these states, saved after `steps` updates. Throws std::runtime_error if it lacks
  /// what the rule needs, or if others hold the parameters and have not been restored.
  virtual void load(const TensorMap& /*state*/, std::int64_t /*steps*/) {}

  /// Metrics of the last update: "staleness", "dropped_gradients", …
  virtual Metrics metrics() const { return {}; }
};

/// Makes the rule for wrapped optimizer number `optimizer` of a replica, counted from 0.
using UpdateRuleFactory = std::function<std::unique_ptr<UpdateRule>(int optimizer)>;

} // namespace troupe::learner
