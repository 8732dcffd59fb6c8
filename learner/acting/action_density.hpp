#pragma once

namespace troupe::learner {

/// With which probability a policy plays one number of an action, as the environment gets it, in
/// [-1, 1]. A distribution that is clipped there has a density between the bounds and a probability
/// at each of them, so that the measure of densities is the length between the bounds and 1 at
/// each. Densities of one measure may be divided by each other, of whichever kind they are.

/// The logarithm for a normal number that is clipped. `deviation` is above 0.
double log_clipped_normal(double mean, double deviation, double action);
/// The same for tanh of a normal number, rounded to float32, which reaches the bounds.
double log_squashed_normal(double mean, double deviation, double action);

} // namespace troupe::learner
