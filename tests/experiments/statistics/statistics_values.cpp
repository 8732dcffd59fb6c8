// Prints every statistic of the scores that it reads, for rliable_checks.py. Standard input: two
// methods, each with its tasks, runs and scores; then a seed and the number of bootstrap
// repetitions. The tasks of the first method are also taken for the evaluations of one task, whose
// mean curve is printed.
#include <cstdio>
#include <iostream>
#include <vector>

#include "experiments/statistics/comparison.hpp"
#include "experiments/statistics/statistics.hpp"

using namespace troupe::experiments;

namespace {

Scores read_scores() {
  std::size_t tasks = 0, runs = 0;
  std::cin >> tasks >> runs;
  Scores scores(tasks, std::vector<double>(runs));
  for (auto& task : scores)
    for (double& score : task)
      std::cin >> score;
  return scores;
}

void print(const char* name, double value) {
  std::printf("%s %.17g\n", name, value);
}

void print_curve(const Scores& evaluations) {
  std::vector<ComparedRun> runs(evaluations[0].size(),
                                {.folder = {}, .method = "x", .task = "curve", .curve = {}});
  for (std::size_t step = 0; step < evaluations.size(); ++step)
    for (std::size_t run = 0; run < runs.size(); ++run)
      runs[run].curve.push_back({.environment_steps = 1000.0 * static_cast<double>(step),
                                 .value = evaluations[step][run]});
  for (const CurvePoint& point : Comparison(runs, {}).mean_curve("x", "curve")) {
    print("curve", point.value);
    print("curve_low", point.minimum);
    print("curve_high", point.maximum);
  }
}

} // namespace

int main() {
  const Scores x = read_scores();
  const Scores y = read_scores();
  std::uint64_t seed = 0;
  int repetitions = 0;
  std::cin >> seed >> repetitions;
  print("iqm", interquartile_mean(x));
  print("mean", mean_score(x));
  print("median", median_score(x));
  print("gap", optimality_gap(x, 1));
  print("improvement", probability_of_improvement(x, y));
  const std::vector<double> thresholds = {0, 0.25, 0.5, 0.75, 1};
  for (const double part : performance_profile(x, thresholds))
    print("profile", part);
  for (const auto& statistic : {interquartile_mean, mean_score, median_score}) {
    const Interval interval = bootstrap(x, statistic, repetitions, seed);
    print("low", interval.low);
    print("high", interval.high);
  }
  const Interval improvement = bootstrap(x, y, probability_of_improvement, repetitions, seed);
  print("low", improvement.low);
  print("high", improvement.high);
  print_curve(x);
  return std::cin ? 0 : 1;
}
