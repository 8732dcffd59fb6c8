#pragma once

#include <array>
#include <cstdint>

#include "env/random.hpp"

namespace troupe::env::classic {

/// One possible result of an action in a state.
struct Transition {
  double probability = 0;
  std::int64_t state = 0;
  double reward = 0;
  bool terminated = false;
};

/// All possible results. Their probabilities add up to 1; unused entries have probability 0 and
/// come last.
using Transitions = std::array<Transition, 3>;

/// Draws a transition according to the probabilities.
const Transition& draw(const Transitions& transitions, Random& random);

} // namespace troupe::env::classic
