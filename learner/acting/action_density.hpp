#pragma once

namespace troupe::learner {

/// These functions return the log density with which a policy plays one component of an action, as
/// the environment receives it: a number in [-1, 1]. A distribution that is clipped to [-1, 1] has
/// a density between the bounds and a probability mass at each bound. All densities are therefore
/// relative to one measure, the length between the bounds plus a unit mass at each bound. Ratios of
/// these densities are valid even if the two policies use different distributions.

/// Returns the log density of a clipped normal distribution. `deviation` must be above 0.
double log_clipped_normal(double mean, double deviation, double action);
/// Returns the log density of the tanh of a normal variable, rounded to float32. The rounding makes
/// the bounds reachable.
double log_squashed_normal(double mean, double deviation, double action);

} // namespace troupe::learner
