#pragma once

#include "env/spec.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// The transitions that an environment with this spec makes. It has one array, or a picture and
/// then float32 arrays; throws std::invalid_argument naming the others.
replay::TransitionSpec transition_spec(const env::EnvironmentSpec& spec, int n_step,
                                       double discount);

} // namespace troupe::learner
