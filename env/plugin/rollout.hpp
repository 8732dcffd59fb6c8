#pragma once

#include <cstdint>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// The observations and time steps of an environment, for comparison bit for bit.
struct Rollout {
  std::vector<std::vector<std::byte>> observations; // per time step; arrays without padding
  std::vector<TimeStep> steps;

  /// Names the first difference from `other`: "observation 'position' of step 3" or "the reward of
  /// step 7". Empty if there is none.
  std::string difference(const Rollout& other, const EnvironmentSpec& spec) const;
  bool ended() const { return !steps.empty() && steps.back().step_type == StepType::last; }
};

/// How a rollout chooses actions: uniformly at random within the bounds ([-1, 1] where there are
/// none), always at the minimum or maximum, or at twice their distance from the middle.
enum class Acting : std::uint8_t { random, minimum, maximum, beyond };

/// Begins an episode and takes up to `steps` steps. The buffer is filled with `fill` before each
/// step, so that bytes the environment does not write can be detected.
Rollout play(Environment& environment, std::uint64_t seed, std::int64_t steps,
             Acting acting = Acting::random, std::byte fill = std::byte{0});

/// Takes up to `steps` more. Actions depend only on `seed` and the number of steps taken before.
void play_on(Environment& environment, std::uint64_t seed, std::int64_t steps, Rollout& rollout,
             Acting acting = Acting::random, std::byte fill = std::byte{0});

/// The action that a rollout takes at step `step`.
std::vector<double> action_for(const EnvironmentSpec& spec, std::uint64_t seed, std::int64_t step,
                               Acting acting);

} // namespace troupe::env
