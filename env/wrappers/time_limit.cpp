#include "env/wrappers/time_limit.hpp"

#include <stdexcept>

#include "env/state_bytes.hpp"

namespace troupe::env {

TimeLimit::TimeLimit(std::unique_ptr<Environment> wrapped, std::int64_t steps)
    : Wrapper(std::move(wrapped)), limit_(steps) {
  if (steps < 1 || steps > 1'000'000'000)
    throw std::invalid_argument("time_limit: " + std::to_string(steps)
                                + " steps is out of range; it must be from 1 to 1000000000");
  if (spec_.episode_steps == 0 || spec_.episode_steps > steps)
    spec_.episode_steps = steps;
}

TimeStep TimeLimit::reset(std::uint64_t seed, std::span<std::byte> observation) {
  left_ = 0;
  const TimeStep result = inner().reset(seed, observation);
  left_ = limit_;
  return result;
}

TimeStep TimeLimit::step(std::span<const double> action, std::span<std::byte> observation) {
  if (left_ == 0)
    throw std::invalid_argument("environment " + spec_.name
                                + ": step() outside an episode; call reset() first");
  TimeStep result = inner().step(action, observation);
  --left_;
  if (left_ == 0)
    result.step_type = StepType::last;
  if (result.step_type == StepType::last)
    left_ = 0;
  return result;
}

void TimeLimit::save_state(std::vector<std::byte>& out) const {
  save_value(out, left_);
  Wrapper::save_state(out);
}

std::span<const std::byte> TimeLimit::load_state(std::span<const std::byte> in) {
  std::int64_t left = 0;
  load_value(in, left, "steps until the time limit");
  if (left < 0 || left > limit_)
    throw std::invalid_argument("saved environment state has " + std::to_string(left)
                                + " steps left and the time limit here is "
                                + std::to_string(limit_));
  in = Wrapper::load_state(in);
  left_ = left;
  return in;
}

} // namespace troupe::env
