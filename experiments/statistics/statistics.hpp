#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::experiments {

/// The final scores of one method: [task][run]. Tasks may have different numbers of runs, at least
/// one each. The statistics below are those of Agarwal et al. 2021 ("Deep reinforcement learning at
/// the edge of the statistical precipice"), as computed by their package rliable.
using Scores = std::vector<std::vector<double>>;

/// The mean of the middle half of all runs: a quarter of them, rounded down, is discarded at both
/// ends.
double interquartile_mean(const Scores& scores);
double mean_score(const Scores& scores);   // mean of the tasks' means
double median_score(const Scores& scores); // median of the tasks' means
/// How far scores fall below `target` on average; the part above the target does not count.
double optimality_gap(const Scores& scores, double target);

/// The fraction of runs whose score exceeds each threshold: a performance profile.
std::vector<double> performance_profile(const Scores& scores, std::span<const double> thresholds);

/// The probability that a run of `x` beats one of `y` on a random task; equal scores count half.
/// Both must have the same tasks.
double probability_of_improvement(const Scores& x, const Scores& y);

struct Interval {
  double low = 0;
  double high = 0;
};
struct Estimate {
  double value = 0;
  Interval interval; // 95 %; NaN if it is unknown
};

/// The 95 % interval of a statistic by the stratified bootstrap: runs are resampled within each
/// task, `repetitions` times. The result depends only on the arguments. Its limits are NaN if no
/// task has two runs, which tells nothing about how much they vary.
Interval bootstrap(const Scores& scores, const std::function<double(const Scores&)>& statistic,
                   int repetitions, std::uint64_t seed);
/// The same for two methods, which are resampled independently; NaN if no task of either has two
/// runs.
Interval bootstrap(const Scores& x, const Scores& y,
                   const std::function<double(const Scores&, const Scores&)>& statistic,
                   int repetitions, std::uint64_t seed);

/// A statistic and its standard error.
struct WithError {
  double value = 0;
  double error = 0;
};
/// The 95 % interval of a statistic of `count` things by the studentised bootstrap (Efron 1982),
/// which corrects for a skewed distribution. `statistic` gets the indices of the resampled things.
/// The result depends only on the arguments.
Interval
studentised_bootstrap(std::size_t count,
                      const std::function<WithError(std::span<const std::size_t>)>& statistic,
                      int repetitions, std::uint64_t seed);

/// The 95 % interval of a statistic whose estimate is the mean of a few bootstrap replicates, at
/// least two: Student's interval for their standard deviation times sqrt(1 + 1/count). The
/// replicates' own quantiles would be too narrow: the range of five misses the truth in every third
/// case.
Interval replicate_interval(double estimate, std::span<const double> replicates);

} // namespace troupe::experiments
