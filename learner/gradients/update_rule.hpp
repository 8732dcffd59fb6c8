#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learner/metrics.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

/// How the gradients of a wrapped optimizer become an update; each strategy has its own. One per
/// wrapped optimizer and replica, on the replica's thread. Replicas wrap their optimizers in the
/// same order, so that the n-th ones belong together.
class UpdateRule {
public:
  virtual ~UpdateRule() = default;

  /// Called once, before the first step: makes the parameters of all replicas equal, in place.
  /// `optimizer` and its parameters outlive this.
  virtual void begin(torch::optim::Optimizer& optimizer,
                     const std::vector<at::Tensor>& parameters) = 0;

  /// Called with the gradients (accumulated, clipped, finite) in grad() of the parameters; leaves
  /// in the parameters the values for the next forward pass. If no parameter has a gradient, this
  /// replica's were not finite and do not count; it takes part so that no other waits for it.
  /// Throws CollectiveError or std::runtime_error naming the failed replica.
  virtual void update() = 0;

  /// How many updates the parameters have taken since the previous update(): 1 if replicas wait for
  /// each other; else the others' updates count too, and a dropped gradient may leave 0.
  virtual std::int64_t updates_applied() const { return 1; }

  /// Other replicas no longer wait for this one until it calls update() again.
  virtual void suspend_participation() {}

  /// A checkpoint was loaded into the parameters. Parameters held by others, such as servers, keep
  /// their values, which replace the loaded ones.
  virtual void on_parameters_restored() {}

  /// Of the last update, for the curves: "staleness", "dropped_gradients", …
  virtual Metrics metrics() const { return {}; }
};

/// Makes the rule of a replica's wrapped optimizer number `optimizer`, counted from 0.
using UpdateRuleFactory = std::function<std::unique_ptr<UpdateRule>(int optimizer)>;

} // namespace troupe::learner
