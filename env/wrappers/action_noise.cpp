#include "env/wrappers/action_noise.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

namespace {
constexpr std::uint64_t kNoiseStream = 0x616374696f6e; // independent of the task's random numbers
}

ActionNoise::ActionNoise(std::unique_ptr<Environment> wrapped, double deviation)
    : Wrapper(std::move(wrapped)), deviation_(deviation), noisy_(spec_.action.size()) {
  if (!(deviation >= 0 && deviation <= 10))
    throw std::invalid_argument("action_noise: " + std::to_string(deviation)
                                + " is out of range; it must be from 0 to 10");
  for (std::size_t i = 0; i < noisy_.size(); ++i)
    if (!std::isfinite(spec_.action.maximum[i] - spec_.action.minimum[i]))
      throw std::invalid_argument("environment " + spec_.name + ": action[" + std::to_string(i)
                                  + "] has no bounds, so its noise has no unit; scale it first");
}

TimeStep ActionNoise::reset(std::uint64_t seed, std::span<std::byte> observation) {
  random_ = Random(mix_bits(seed ^ kNoiseStream));
  return inner().reset(seed, observation);
}

TimeStep ActionNoise::step(std::span<const double> action, std::span<std::byte> observation) {
  check_action(spec_, action);
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (spec_.action.choices_of(i) != 0) {
      noisy_[i] = action[i];
      continue;
    }
    const double low = spec_.action.minimum[i];
    const double high = spec_.action.maximum[i];
    const double noise = deviation_ * (high - low) / 2 * random_.normal();
    noisy_[i] = std::clamp(std::clamp(action[i], low, high) + noise, low, high);
  }
  return inner().step(noisy_, observation);
}

void ActionNoise::save_state(std::vector<std::byte>& out) const {
  save_value(out, random_);
  Wrapper::save_state(out);
}

std::span<const std::byte> ActionNoise::load_state(std::span<const std::byte> in) {
  Random random;
  load_value(in, random, "action noise");
  in = Wrapper::load_state(in);
  random_ = random;
  return in;
}

} // namespace troupe::env
