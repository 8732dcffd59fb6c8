#pragma once

#include <map>
#include <string>

namespace troupe::learner {

/// Scalars of one step, for the curves: "critic_loss" -> 1.5.
using Metrics = std::map<std::string, double>;

} // namespace troupe::learner
