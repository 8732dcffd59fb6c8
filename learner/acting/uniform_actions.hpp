#pragma once

#include <span>

#include "learner/acting/policy.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Draws uniformly random actions [batch, action size], each row from its own generator.
void draw_uniform(const replay::TransitionSpec& transitions, std::span<ActingRandom* const> random,
                  std::span<float> actions);
/// The log-probability of every such action, as defined by Policy::log_probability().
double log_uniform(const replay::TransitionSpec& transitions);

} // namespace troupe::learner
