#pragma once

#include <cstddef>

namespace troupe::learner {

struct WrappedOptimizerOptions;

// These functions throw std::invalid_argument naming the option and the rule.

void check_norm_limit(double norm);
/// Checks the options of an optimizer with this many parameters and parameter groups.
void check_wrapped(const WrappedOptimizerOptions& options, std::size_t parameters,
                   std::size_t groups);
/// Refuses options of the average over replicas, under a strategy in which no such average is made.
void check_without_average(const WrappedOptimizerOptions& options);

} // namespace troupe::learner
