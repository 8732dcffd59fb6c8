// Prints every statistic of the scores that it reads, for rliable_checks.py. Standard input: two
// methods, each with its tasks, runs and scores; then a seed and the number of bootstrap
// repetitions.
#include <cstdio>
#include <iostream>
#include <vector>

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
  return std::cin ? 0 : 1;
}
