#include "env/wrappers/action_repeat.hpp"

#include <stdexcept>

namespace troupe::env {

ActionRepeat::ActionRepeat(std::unique_ptr<Environment> wrapped, int count)
    : Wrapper(std::move(wrapped)), count_(count) {
  if (count < 1 || count > 1000)
    throw std::invalid_argument("action_repeat: " + std::to_string(count)
                                + " is out of range; it must be from 1 to 1000");
  if (count > 1)
    spec_.goal = {};
  spec_.action_repeat *= count;
  spec_.episode_steps = (spec_.episode_steps + count - 1) / count;
}

TimeStep ActionRepeat::step(std::span<const double> action, std::span<std::byte> observation) {
  TimeStep sum = inner().step(action, observation);
  for (int i = 1; i < count_ && sum.step_type != StepType::last; ++i) {
    const TimeStep next = inner().step(action, observation);
    sum.step_type = next.step_type;
    sum.reward += next.reward;
    sum.discount *= next.discount;
  }
  return sum;
}

} // namespace troupe::env
