#include "learner/acting/uniform_actions.hpp"

#include <cmath>
#include <cstddef>

namespace troupe::learner {

void draw_uniform(const replay::TransitionSpec& transitions, std::span<ActingRandom* const> random,
                  std::span<float> actions) {
  const auto size = static_cast<std::size_t>(transitions.action_size);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const double drawn = random[i / size]->uniform();
    const auto n = static_cast<double>(transitions.choices_of(i % size));
    actions[i] = static_cast<float>(n > 0 ? std::floor(drawn * n) : 2.0 * drawn - 1.0);
  }
}

double log_uniform(const replay::TransitionSpec& transitions) {
  double logarithm = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(transitions.action_size); ++i) {
    const auto n = static_cast<double>(transitions.choices_of(i));
    logarithm -= std::log(n > 0 ? n : 2.0); // 2: the length of [-1, 1]
  }
  return logarithm;
}

} // namespace troupe::learner
