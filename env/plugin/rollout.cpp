#include "env/plugin/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "env/random.hpp"

namespace troupe::env {

namespace {

std::vector<std::byte> without_padding(const EnvironmentSpec& spec,
                                       std::span<const std::byte> observation) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < spec.observations.size(); ++i) {
    const auto array =
        observation.subspan(spec.observation_offset(i), spec.observations[i].bytes());
    out.insert(out.end(), array.begin(), array.end());
  }
  return out;
}

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::string array_at(const EnvironmentSpec& spec, std::size_t byte) {
  for (const ArraySpec& array : spec.observations) {
    if (byte < array.bytes())
      return std::string("observation '") + array.name + "'["
             + std::to_string(byte / element_bytes(array.type)) + "]";
    byte -= array.bytes();
  }
  return "the observation";
}

} // namespace

std::string Rollout::difference(const Rollout& other, const EnvironmentSpec& spec) const {
  const std::size_t count = std::min(steps.size(), other.steps.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string at = " of step " + std::to_string(i);
    const auto [mine, theirs] =
        std::mismatch(observations[i].begin(), observations[i].end(), other.observations[i].begin(),
                      other.observations[i].end());
    if (mine != observations[i].end())
      return array_at(spec, static_cast<std::size_t>(mine - observations[i].begin())) + at;
    if (!same_bits(steps[i].reward, other.steps[i].reward))
      return "the reward" + at + " (" + std::to_string(steps[i].reward) + " and "
             + std::to_string(other.steps[i].reward) + ")";
    if (!same_bits(steps[i].discount, other.steps[i].discount))
      return "the discount" + at;
    if (steps[i].step_type != other.steps[i].step_type)
      return "the step type" + at;
  }
  if (steps.size() != other.steps.size())
    return "the number of steps (" + std::to_string(steps.size() - 1) + " and "
           + std::to_string(other.steps.size() - 1) + ")";
  return "";
}

std::vector<double> action_for(const EnvironmentSpec& spec, std::uint64_t seed, std::int64_t step,
                               Acting acting) {
  Random random(mix_bits(seed + kSplitMixStep * static_cast<std::uint64_t>(step)));
  std::vector<double> action(spec.action.size());
  for (std::size_t i = 0; i < action.size(); ++i) {
    const double low = spec.action.minimum[i];
    const double high = spec.action.maximum[i];
    const bool bounded = std::isfinite(low) && std::isfinite(high);
    const double drawn = random.uniform();
    if (const std::int64_t n = spec.action.choices_of(i); n != 0)
      action[i] = acting == Acting::random    ? std::floor(drawn * static_cast<double>(n))
                  : acting == Acting::minimum ? 0
                                              : static_cast<double>(n - 1);
    else if (acting == Acting::random)
      action[i] = bounded ? low + (high - low) * drawn : 2 * drawn - 1;
    else if (!bounded)
      action[i] = acting == Acting::minimum ? -1 : 1;
    else if (acting == Acting::beyond)
      action[i] = high + (high - low) / 2;
    else
      action[i] = acting == Acting::minimum ? low : high;
  }
  return action;
}

void play_on(Environment& environment, std::uint64_t seed, std::int64_t steps, Rollout& rollout,
             Acting acting, std::byte fill) {
  std::vector<std::byte> observation(environment.spec().observation_bytes());
  for (std::int64_t i = 0; i < steps && !rollout.ended(); ++i) {
    std::fill(observation.begin(), observation.end(), fill);
    const auto taken = static_cast<std::int64_t>(rollout.steps.size());
    rollout.steps.push_back(
        environment.step(action_for(environment.spec(), seed, taken, acting), observation));
    rollout.observations.push_back(without_padding(environment.spec(), observation));
  }
}

Rollout play(Environment& environment, std::uint64_t seed, std::int64_t steps, Acting acting,
             std::byte fill) {
  Rollout rollout;
  std::vector<std::byte> observation(environment.spec().observation_bytes(), fill);
  rollout.steps.push_back(environment.reset(seed, observation));
  rollout.observations.push_back(without_padding(environment.spec(), observation));
  play_on(environment, seed, steps, rollout, acting, fill);
  return rollout;
}

} // namespace troupe::env
