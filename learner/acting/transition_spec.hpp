#pragma once

#include "env/spec.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Returns the spec of the transitions of an environment. The environment must have either one
/// array, or a picture followed by float32 arrays; otherwise throws std::invalid_argument naming
/// the arrays that do not fit.
replay::TransitionSpec transition_spec(const env::EnvironmentSpec& spec, int n_step,
                                       double discount);

} // namespace troupe::learner
