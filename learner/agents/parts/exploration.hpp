#pragma once

#include <cstddef>
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

/// Draws of exploration that rows keep for several steps (Dabney et al. 2021): n steps with a
/// probability in proportion to n^-2, `most` at most, or until the episode ends. With `most` 1
/// nothing is kept or drawn. The rows of a batch are always the same ones. One thread.
class HeldDraws {
public:
  /// `size`: numbers of a row.
  HeldDraws(std::int64_t most, std::size_t size);

  bool holds() const { return !cumulative_.empty(); }
  /// The row's numbers if it keeps them in this step, too; empty: it draws again.
  std::span<const double> kept(const Exploration& exploration, std::size_t row);
  /// For the row's new numbers, which it keeps for a number of steps that is drawn now.
  std::span<double> renew(const Exploration& exploration, std::size_t row);

  /// As Policy::save_exploration() and load_exploration(); nothing unless it holds().
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void fit(const Exploration& exploration);

  std::size_t size_;
  std::vector<double> cumulative_;  // [most] probability of at most i + 1 steps; empty: 1 step
  std::vector<std::int64_t> steps_; // [batch] that are left
  std::vector<double> numbers_;     // [batch, size]
};

/// Gaussian exploration noise, in units of the action range [-1, 1].
struct NoiseConfig : Schedule {
  std::int64_t hold = 1; // steps for which a draw is kept, at most (HeldDraws)

  /// Its keys in an agent's block: noise_start, noise_end, noise_steps, noise_hold.
  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent) const;
};

/// Random choices in place of the best ones.
struct EpsilonConfig {
  Schedule probability{.start = 1, .end = 0.05, .steps = 10'000};
  /// Environment i of n takes the probability to the power 1 + ladder * i / (n - 1).
  double ladder = 0;
  std::int64_t hold = 1; // steps for which a random choice is kept, at most (HeldDraws)

  /// Its keys in an agent's block: epsilon_start, epsilon_end, epsilon_steps, epsilon_ladder,
  /// epsilon_hold.
  void add_members(Members& members);
  double at(const Exploration& exploration, std::size_t row) const;
};

/// Makes the choices of a batch of environments explore. The rows of a batch are always the same
/// ones. One thread.
class EpsilonGreedy {
public:
  explicit EpsilonGreedy(const EpsilonConfig& config) : config_(config), held_(config.hold, 1) {}

  /// actions: [batch], of `choices` each.
  void apply(const Exploration& exploration, std::int64_t choices, std::span<float> actions);

  /// As Policy::has_density() and log_probability(); best: [batch], what apply() is given.
  bool has_density() const { return !held_.holds(); }
  void log_probability(const Exploration& exploration, std::int64_t choices,
                       std::span<const float> best, std::span<const float> actions,
                       std::span<double> out) const;

  void save_state(std::vector<std::byte>& out) const { held_.save_state(out); }
  std::span<const std::byte> load_state(std::span<const std::byte> in) {
    return held_.load_state(in);
  }

private:
  EpsilonConfig config_;
  HeldDraws held_;
};

/// Adds the schedule's noise to actions [batch, action size] and clips them to [-1, 1].
void add_noise(const Schedule& deviation, const Exploration& exploration, std::span<float> actions);

} // namespace troupe::learner
