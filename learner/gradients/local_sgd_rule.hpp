#pragma once

#include <cstdint>
#include <memory>

#include "learner/gradients/update_rule.hpp"

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

struct LocalSgdOptions {
  std::int64_t period = 8; // steps between two averages
  /// Number of initial steps in which gradients are averaged instead (post-local SGD, Lin et al.
  /// 2020).
  std::int64_t synchronous_steps = 0;
  /// Also averages the optimizer's state, if describe() knows it. Moments that a replica lacks,
  /// because the parameter had no gradient there, count as zero.
  bool average_moments = false;
};

/// Local SGD: every replica steps its own optimizer, and every `period` steps the parameters are
/// replaced by their mean over the replicas. All replicas must make the same number of steps.
/// metrics() returns "averaged" (1 in a step that averaged) and "steps_since_average". To resume,
/// each replica loads its own parameters and its own state(), because they differ between averages.
///
/// `communicator` must outlive the rule; it may be null for a single replica. Throws
/// std::invalid_argument if an option is out of range.
std::unique_ptr<UpdateRule> make_local_sgd_rule(collectives::Communicator* communicator,
                                                const LocalSgdOptions& options = {});

UpdateRuleFactory local_sgd_rules(collectives::Communicator* communicator,
                                  const LocalSgdOptions& options = {});

} // namespace troupe::learner
