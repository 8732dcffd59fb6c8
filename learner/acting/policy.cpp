#include "learner/acting/policy.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace troupe::learner {

double ActingRandom::uniform() {
  return static_cast<double>(generator() >> 11) * 0x1.0p-53;
}

/// Box-Muller, one value per call, so that the generator is the only state.
double ActingRandom::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

void Policy::explore(const Observations& observations, const Exploration&,
                     std::span<float> actions) {
  act(observations, actions);
  const std::size_t size = actions.size() / static_cast<std::size_t>(observations.batch);
  for (std::size_t i = 0; i < actions.size(); ++i)
    if (!std::isfinite(actions[i]))
      throw std::runtime_error("the policy's action " + std::to_string(i % size) + " in row "
                               + std::to_string(i / size) + " is not finite");
}

void Policy::log_probability(const Observations&, const Exploration&, std::span<const float>,
                             std::span<double>) {
  throw std::logic_error("the policy does not draw its actions one by one, so they have no "
                         "probabilities; ask has_density() first");
}

void Policy::follow(const Observations& observations, std::span<const float> actions) {
  std::vector<float> chosen(actions.size());
  act(observations, chosen);
}

} // namespace troupe::learner
