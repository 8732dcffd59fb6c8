#include "env/wrappers/reward_scale.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace troupe::env {

RewardScale::RewardScale(std::unique_ptr<Environment> wrapped, double scale)
    : Wrapper(std::move(wrapped)), scale_(scale) {
  if (!std::isfinite(scale) || scale == 0)
    throw std::invalid_argument("reward_scale: " + std::to_string(scale)
                                + " preserves nothing of the rewards; give a finite scale that is "
                                  "not 0");
  spec_.goal = {};
}

TimeStep RewardScale::step(std::span<const double> action, std::span<std::byte> observation) {
  TimeStep result = inner().step(action, observation);
  result.reward *= scale_;
  return result;
}

RewardClip::RewardClip(std::unique_ptr<Environment> wrapped, double minimum, double maximum)
    : Wrapper(std::move(wrapped)), minimum_(minimum), maximum_(maximum) {
  if (!(minimum < maximum))
    throw std::invalid_argument("reward_clip: [" + std::to_string(minimum) + ", "
                                + std::to_string(maximum)
                                + "] is not a range; the minimum must be below the maximum");
  spec_.goal = {};
}

TimeStep RewardClip::step(std::span<const double> action, std::span<std::byte> observation) {
  TimeStep result = inner().step(action, observation);
  result.reward = std::clamp(result.reward, minimum_, maximum_);
  return result;
}

} // namespace troupe::env
