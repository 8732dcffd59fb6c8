#include "experiments/statistics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "env/random.hpp"

namespace troupe::experiments {
namespace {

std::vector<double> all_of(const Scores& scores) {
  std::vector<double> all;
  for (const auto& task : scores)
    all.insert(all.end(), task.begin(), task.end());
  return all;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> task_means(const Scores& scores) {
  std::vector<double> means;
  for (const auto& task : scores)
    means.push_back(mean_of(task));
  return means;
}

/// Interpolates linearly between the two neighbouring values, as NumPy's percentile does.
double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto before = static_cast<std::size_t>(place);
  const std::size_t behind = std::min(before + 1, sorted.size() - 1);
  return sorted[before] + (place - std::floor(place)) * (sorted[behind] - sorted[before]);
}

bool has_two_runs(const Scores& scores) {
  return std::any_of(scores.begin(), scores.end(),
                     [](const auto& task) { return task.size() > 1; });
}

void draw_again(const Scores& scores, env::Random& random, Scores& drawn) {
  for (std::size_t task = 0; task < scores.size(); ++task)
    for (double& score : drawn[task])
      score = scores[task][random.bits() % scores[task].size()];
}

constexpr Interval kUnknown{std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::quiet_NaN()};

/// The 97.5 % quantile of Student's t distribution.
double student_quantile(std::size_t degrees) {
  constexpr double kFirst[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646,
                               2.3060,  2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448};
  if (degrees <= std::size(kFirst))
    return kFirst[degrees - 1];
  return 1.95996 + 2.37227 / static_cast<double>(degrees) // within 0.001
         + 2.82 / static_cast<double>(degrees * degrees);
}

Interval middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.025), quantile(values, 0.975)};
}

} // namespace

double interquartile_mean(const Scores& scores) {
  std::vector<double> all = all_of(scores);
  std::sort(all.begin(), all.end());
  const std::size_t cut = all.size() / 4;
  return mean_of(std::span(all).subspan(cut, all.size() - 2 * cut));
}

double mean_score(const Scores& scores) {
  return mean_of(task_means(scores));
}

double median_score(const Scores& scores) {
  std::vector<double> means = task_means(scores);
  std::sort(means.begin(), means.end());
  return quantile(means, 0.5);
}

double optimality_gap(const Scores& scores, double target) {
  std::vector<double> all = all_of(scores);
  for (double& score : all)
    score = std::min(score, target);
  return target - mean_of(all);
}

std::vector<double> performance_profile(const Scores& scores, std::span<const double> thresholds) {
  std::vector<double> all = all_of(scores);
  std::vector<double> profile;
  for (const double threshold : thresholds)
    profile.push_back(static_cast<double>(std::count_if(
                          all.begin(), all.end(), [&](double score) { return score > threshold; }))
                      / static_cast<double>(all.size()));
  return profile;
}

double probability_of_improvement(const Scores& x, const Scores& y) {
  double sum = 0;
  for (std::size_t task = 0; task < x.size(); ++task) {
    double won = 0;
    for (const double ours : x[task])
      for (const double theirs : y[task])
        won += ours > theirs ? 1 : (ours < theirs ? 0 : 0.5);
    sum += won / static_cast<double>(x[task].size() * y[task].size());
  }
  return sum / static_cast<double>(x.size());
}

Interval bootstrap(const Scores& scores, const std::function<double(const Scores&)>& statistic,
                   int repetitions, std::uint64_t seed) {
  if (!has_two_runs(scores))
    return kUnknown;
  env::Random random(seed);
  Scores drawn = scores;
  std::vector<double> values;
  for (int i = 0; i < repetitions; ++i) {
    draw_again(scores, random, drawn);
    values.push_back(statistic(drawn));
  }
  return middle(std::move(values));
}

Interval bootstrap(const Scores& x, const Scores& y,
                   const std::function<double(const Scores&, const Scores&)>& statistic,
                   int repetitions, std::uint64_t seed) {
  if (!has_two_runs(x) && !has_two_runs(y))
    return kUnknown;
  env::Random random(seed);
  Scores ours = x;
  Scores theirs = y;
  std::vector<double> values;
  for (int i = 0; i < repetitions; ++i) {
    draw_again(x, random, ours);
    draw_again(y, random, theirs);
    values.push_back(statistic(ours, theirs));
  }
  return middle(std::move(values));
}

Interval
studentised_bootstrap(std::size_t count,
                      const std::function<WithError(std::span<const std::size_t>)>& statistic,
                      int repetitions, std::uint64_t seed) {
  env::Random random(seed);
  std::vector<std::size_t> drawn(count);
  std::iota(drawn.begin(), drawn.end(), 0);
  const WithError all = statistic(drawn);
  std::vector<double> deviations;
  for (int i = 0; i < repetitions; ++i) {
    for (std::size_t& each : drawn)
      each = random.bits() % count;
    const WithError one = statistic(drawn);
    if (one.error > 0)
      deviations.push_back((one.value - all.value) / one.error);
  }
  if (deviations.empty())
    return {all.value, all.value};
  const Interval middle_of_them = middle(std::move(deviations));
  return {all.value - middle_of_them.high * all.error, all.value - middle_of_them.low * all.error};
}

Interval replicate_interval(double estimate, std::span<const double> replicates) {
  const auto count = static_cast<double>(replicates.size());
  const double mean = mean_of(replicates);
  double squares = 0;
  for (const double replicate : replicates)
    squares += (replicate - mean) * (replicate - mean);
  const double half =
      student_quantile(replicates.size() - 1) * std::sqrt(squares / (count - 1) * (1 + 1 / count));
  return {estimate - half, estimate + half};
}

} // namespace troupe::experiments
