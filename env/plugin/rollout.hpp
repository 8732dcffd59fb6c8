#pragma once

#include <cstdint>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// What an environment showed and paid, for comparisons to the bit.
struct Rollout {
  std::vector<std::vector<std::byte>> observations; // arrays only, no padding; one per time step
  std::vector<TimeStep> steps;

  /// "observation 'position' of step 3" or "the reward of step 7": the first that differs from
  /// `other`; empty when none does.
  std::string difference(const Rollout& other, const EnvironmentSpec& spec) const;
  bool ended() const { return !steps.empty() && steps.back().step_type == StepType::last; }
};

/// How a rollout acts: uniformly at random within the bounds ([-1, 1] where there are none), always
/// at the minimum or maximum, or at twice the distance from the middle.
enum class Acting : std::uint8_t { random, minimum, maximum, beyond };

/// Begins an episode and takes up to `steps` steps of it. The buffer is filled with `fill` before
/// each, which shows what is not written.
Rollout play(Environment& environment, std::uint64_t seed, std::int64_t steps,
             Acting acting = Acting::random, std::byte fill = std::byte{0});

/// Takes up to `steps` more; the actions are a function of `seed` and of how many were taken.
void play_on(Environment& environment, std::uint64_t seed, std::int64_t steps, Rollout& rollout,
             Acting acting = Acting::random, std::byte fill = std::byte{0});

/// One action as a rollout takes it.
std::vector<double> action_for(const EnvironmentSpec& spec, std::uint64_t seed, std::int64_t step,
                               Acting acting);

} // namespace troupe::env
