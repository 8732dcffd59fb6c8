#pragma once

#include <span>

#include "learner/acting/policy.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Draws actions [batch, action size] uniformly, each row from its own source.
void draw_uniform(const replay::TransitionSpec& transitions, std::span<ActingRandom* const> random,
                  std::span<float> actions);
/// The logarithm of the probability of each of them, as Policy::log_probability() defines it.
double log_uniform(const replay::TransitionSpec& transitions);

} // namespace troupe::learner
