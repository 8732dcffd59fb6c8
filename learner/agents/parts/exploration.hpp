#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// A number that changes linearly over a run's agent steps, not counting its random steps.
struct Schedule {
  double start = 0;
  double end = 0;
  std::int64_t steps = 1;

  double at(std::int64_t step) const;
};

/// Random numbers that rows keep for several steps (Dabney et al. 2021). They are kept for n steps
/// with a probability proportional to n^-2, at most for `most` steps, and at most until the episode
/// ends. With `most` 1 nothing is kept. A row must always belong to the same environment. Not
/// thread-safe.
class HeldDraws {
public:
  /// `size`: numbers per row.
  HeldDraws(std::int64_t most, std::size_t size);

  bool holds() const { return !cumulative_.empty(); }
  /// Returns the row's numbers if they are kept in this step; empty: draw new ones with renew().
  std::span<const double> kept(const Exploration& exploration, std::size_t row);
  /// Draws for how many steps the row keeps its next numbers. Returns where to write them.
  std::span<double> renew(const Exploration& exploration, std::size_t row);

  /// See Policy::save_exploration() and load_exploration(). They do nothing unless holds().
  void save_state(std::vector<std::byte>& out) const;
  std::span<const std::byte> load_state(std::span<const std::byte> in);

private:
  void fit(const Exploration& exploration);

  std::size_t size_;
  std::vector<double> cumulative_;  // [most] probability of at most i + 1 steps; empty: 1 step
  std::vector<std::int64_t> steps_; // [batch] remaining steps
  std::vector<double> numbers_;     // [batch, size]
};

/// Gaussian exploration noise, in units of the action range [-1, 1].
struct NoiseConfig : Schedule {
  std::int64_t hold = 1; // maximum number of steps for which a draw is kept (HeldDraws)

  /// Adds the keys of an agent's block: noise_start, noise_end, noise_steps, noise_hold.
  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent) const;
};

/// Random choices instead of the best ones.
struct EpsilonConfig {
  Schedule probability{.start = 1, .end = 0.05, .steps = 10'000};
  /// Environment i of n uses probability^(1 + ladder * i / (n - 1)).
  double ladder = 0;
  std::int64_t hold = 1; // maximum number of steps for which a random choice is kept (HeldDraws)

  /// Adds the keys of an agent's block: epsilon_start, epsilon_end, epsilon_steps, epsilon_ladder,
  /// epsilon_hold.
  void add_members(Members& members);
  double at(const Exploration& exploration, std::size_t row) const;
};

/// Adds exploration to the choices of a batch of environments. A row must always belong to the same
/// environment. Not thread-safe.
class EpsilonGreedy {
public:
  explicit EpsilonGreedy(const EpsilonConfig& config) : config_(config), held_(config.hold, 1) {}

  /// Replaces some of the actions [batch] by random ones, out of `choices` alternatives.
  void apply(const Exploration& exploration, std::int64_t choices, std::span<float> actions);

  /// See Policy::has_density() and log_probability(). `best` are the actions [batch] passed to
  /// apply().
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

/// Adds Gaussian noise to actions [batch, action size], with the schedule's standard deviation, and
/// clips them to [-1, 1].
void add_noise(const Schedule& deviation, const Exploration& exploration, std::span<float> actions);

} // namespace troupe::learner
