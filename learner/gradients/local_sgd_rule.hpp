#pragma once

#include <cstdint>
#include <memory>

#include "learner/gradients/update_rule.hpp"

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

struct LocalSgdOptions {
  std::int64_t period = 8; // steps from one averaging to the next
  /// So many steps at first with gradients averaged in each (post-local SGD, Lin et al. 2020).
  std::int64_t synchronous_steps = 0;
  bool average_moments = false; // also the optimizer's state, if describe() knows the optimizer
};

/// Local SGD: every replica steps its own optimizer; every `period` steps parameters are replaced
/// by their mean over the replicas. All replicas make the same number of steps. metrics():
/// "averaged" (1 in a step that did) and "steps_since_average".
///
/// `communicator` may be null for a single replica and must outlive the rule. Throws
/// std::invalid_argument on options out of range.
std::unique_ptr<UpdateRule> make_local_sgd_rule(collectives::Communicator* communicator,
                                                const LocalSgdOptions& options = {});

UpdateRuleFactory local_sgd_rules(collectives::Communicator* communicator,
                                  const LocalSgdOptions& options = {});

} // namespace troupe::learner
