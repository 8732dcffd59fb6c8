#include "env/classic/transitions.hpp"

namespace troupe::env::classic {

const Transition& draw(const Transitions& transitions, Random& random) {
  const double drawn = random.uniform();
  double sum = 0;
  for (const Transition& transition : transitions)
    if (drawn < (sum += transition.probability))
      return transition;
  return transitions.front(); // rounding left the sum below 1
}

} // namespace troupe::env::classic
