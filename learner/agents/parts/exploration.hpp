#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// A number that changes linearly over the agent steps of a run, after its random ones.
struct Schedule {
  double start = 0;
  double end = 0;
  std::int64_t steps = 1;

  double at(std::int64_t step) const;
};

/// Gaussian exploration noise, in units of the action range [-1, 1].
struct NoiseConfig : Schedule {
  /// Its keys in an agent's block: noise_start, noise_end, noise_steps.
  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent) const;
};

/// Random choices in place of the best ones.
struct EpsilonConfig {
  Schedule probability{.start = 1, .end = 0.05, .steps = 10'000};
  /// Environment i of n takes the probability to the power 1 + ladder * i / (n - 1).
  double ladder = 0;

  /// Its keys in an agent's block: epsilon_start, epsilon_end, epsilon_steps, epsilon_ladder.
  void add_members(Members& members);
  double at(const Exploration& exploration, std::size_t row) const;
  /// actions: [batch], of `choices` each.
  void apply(const Exploration& exploration, std::int64_t choices, std::span<float> actions) const;
};

/// Adds the schedule's noise to actions [batch, action size] and clips them to [-1, 1].
void add_noise(const Schedule& deviation, const Exploration& exploration, std::span<float> actions);

} // namespace troupe::learner
