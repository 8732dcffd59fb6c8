#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "env/gym/gym.hpp"
#include "env/random.hpp"

namespace troupe::env {

/// An environment and a buffer for its observations.
struct Played {
  std::unique_ptr<Environment> environment;
  std::vector<double> observation;

  explicit Played(const std::string& name, const GymOptions& options = {})
      : environment(make_gym(name, options)),
        observation(environment->spec().observation_bytes() / sizeof(double)) {}

  std::span<std::byte> buffer() { return std::as_writable_bytes(std::span(observation)); }
  TimeStep reset(std::uint64_t seed) { return environment->reset(seed, buffer()); }
  TimeStep step(std::span<const double> action) { return environment->step(action, buffer()); }
  TimeStep step_randomly(Random& random, double scale = 1) {
    const ActionSpec& spec = environment->spec().action;
    std::vector<double> action(spec.size());
    for (std::size_t i = 0; i < action.size(); ++i)
      action[i] = scale * random.uniform(spec.minimum[i], spec.maximum[i]);
    return step(action);
  }
  /// Takes random actions until the episode ends, at most `most`. Returns the number of steps.
  int play(Random& random, int most, TimeStep& last) {
    for (int i = 1; i <= most; ++i)
      if ((last = step_randomly(random)).step_type == StepType::last)
        return i;
    return most;
  }
};

inline double part(const Environment& environment, const std::string& name) {
  for (const RewardPart& p : gym_reward_parts(environment))
    if (p.name == name)
      return p.value;
  FAIL("no part ", name);
  return 0;
}

} // namespace troupe::env
