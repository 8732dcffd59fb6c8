#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "learner/replica.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

/// How the gradients of a wrapped optimizer become an update: what the strategies differ in. One
/// per wrapped optimizer and replica, on the replica's thread. Replicas wrap their optimizers in
/// the same order, so that the n-th of each belong together.
class UpdateRule {
public:
  virtual ~UpdateRule() = default;

  /// Once, before the first step: makes the parameters of all replicas alike, in place. `optimizer`
  /// and its parameters outlive this.
  virtual void begin(torch::optim::Optimizer& optimizer,
                     const std::vector<at::Tensor>& parameters) = 0;

  /// The gradients (accumulated, clipped, finite) lie in grad() of the parameters; afterwards the
  /// parameters hold what the next forward pass shall see. No parameter has one: this replica's
  /// were not finite and are left out; it takes part so that nobody waits for it. Throws
  /// CollectiveError or std::runtime_error naming who failed.
  virtual void update() = 0;

  /// How many updates the parameters have taken since the update() before: 1 where replicas wait
  /// for each other; else the others' count too, and a gradient that was left out may leave 0.
  virtual std::int64_t advanced() const { return 1; }

  /// This replica has made the steps of a run: others need not wait for it. It may go on with
  /// update() later.
  virtual void rest() {}

  /// A checkpoint was loaded into the parameters. What others than this replica hold of them stays
  /// theirs, and is put back.
  virtual void loaded() {}

  /// Of the last update, for the curves: "staleness", "dropped_gradients", …
  virtual Metrics metrics() const { return {}; }
};

} // namespace troupe::learner
