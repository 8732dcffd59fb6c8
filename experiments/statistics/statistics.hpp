#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::experiments {

/// The final scores of one method: [task][run]. Tasks may have different numbers of runs, each at
/// least one. What follows is Agarwal et al. 2021 ("Deep reinforcement learning at the edge of the
/// statistical precipice") as their package rliable computes it.
using Scores = std::vector<std::vector<double>>;

/// The mean of the middle half of all runs: a quarter of them, rounded down, is left out at both
/// ends.
double interquartile_mean(const Scores& scores);
double mean_score(const Scores& scores);   // of the tasks' means
double median_score(const Scores& scores); // of the tasks' means
/// How far scores stay below `target` on average; more than the target does not count.
double optimality_gap(const Scores& scores, double target);

/// The part of all runs with more than each threshold: a performance profile.
std::vector<double> performance_profile(const Scores& scores, std::span<const double> thresholds);

/// The probability that a run of `x` beats one of `y` on a random task; equal scores count half.
/// Both have the same tasks.
double probability_of_improvement(const Scores& x, const Scores& y);

struct Interval {
  double low = 0;
  double high = 0;
};

/// The 95 % interval of a statistic by the stratified bootstrap: runs are drawn again within each
/// task, `repetitions` times. Depends only on the arguments.
Interval bootstrap(const Scores& scores, const std::function<double(const Scores&)>& statistic,
                   int repetitions, std::uint64_t seed);
/// The same of two methods, each drawn on its own.
Interval bootstrap(const Scores& x, const Scores& y,
                   const std::function<double(const Scores&, const Scores&)>& statistic,
                   int repetitions, std::uint64_t seed);

} // namespace troupe::experiments
