#include "replay/chunks/spec.hpp"

#include <stdexcept>

namespace troupe::replay {

GoalStrategy goal_strategy_named(const std::string& name) {
  for (const GoalStrategy strategy :
       {GoalStrategy::final, GoalStrategy::future, GoalStrategy::episode})
    if (name == goal_strategy_name(strategy))
      return strategy;
  throw std::invalid_argument("hindsight strategy '" + name + "' must be final, future or episode");
}

const char* goal_strategy_name(GoalStrategy strategy) {
  switch (strategy) {
  case GoalStrategy::final:
    return "final";
  case GoalStrategy::future:
    return "future";
  case GoalStrategy::episode:
    return "episode";
  }
  throw std::invalid_argument("hindsight strategy " + std::to_string(static_cast<int>(strategy))
                              + " is unknown");
}

env::ArraySpec TransitionSpec::observation() const {
  env::ArraySpec whole = frame;
  if (!whole.shape.empty())
    whole.shape[0] *= stack;
  return whole;
}

std::size_t TransitionSpec::vector_offset(std::size_t index) const {
  const auto rounded = [](std::size_t bytes) { return (bytes + 7) / 8 * 8; };
  std::size_t at = rounded(observation().bytes());
  for (std::size_t i = 0; i < index; ++i)
    at += rounded(vectors[i].bytes());
  return at;
}

std::size_t TransitionSpec::observation_bytes() const {
  if (vectors.empty())
    return observation().bytes();
  return vector_offset(vectors.size() - 1) + vectors.back().bytes();
}

std::size_t TransitionSpec::vector_elements() const {
  std::size_t count = 0;
  for (const env::ArraySpec& vector : vectors)
    count += vector.elements();
  return count;
}

std::string vector_name(const std::string& observation, const env::ArraySpec& vector) {
  return observation + "/" + vector.name;
}

} // namespace troupe::replay
