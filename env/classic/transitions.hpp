#pragma once

#include <array>
#include <cstdint>

#include "env/random.hpp"

namespace troupe::env::classic {

/// What may follow from a state and an action.
struct Transition {
  double probability = 0;
  std::int64_t state = 0;
  double reward = 0;
  bool terminated = false;
};

/// All that may follow; their probabilities add up to 1, unused ones have 0 and come last.
using Transitions = std::array<Transition, 3>;

/// One of them with its probability.
const Transition& draw(const Transitions& transitions, Random& random);

} // namespace troupe::env::classic
