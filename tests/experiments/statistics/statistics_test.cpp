// Intervals from few replicates and of skewed numbers.
#include "experiments/statistics/statistics.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "env/random.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

WithError mean_with_error(const std::vector<double>& values, std::span<const std::size_t> drawn) {
  double sum = 0, squares = 0;
  for (const std::size_t i : drawn) {
    sum += values[i];
    squares += values[i] * values[i];
  }
  const auto count = static_cast<double>(drawn.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean) / (count - 1))};
}

bool holds(const Interval& interval, double truth) {
  return interval.low <= truth && truth <= interval.high;
}

} // namespace

TEST_CASE("The interval of replicates is Student's interval from a table") {
  const std::vector<double> three{1, 2, 3}; // deviation 1; quantile 4.3027
  const Interval interval = replicate_interval(5, three);
  CHECK(interval.high == doctest::Approx(5 + 4.3027 * std::sqrt(4.0 / 3)));
  CHECK(interval.low == doctest::Approx(5 - 4.3027 * std::sqrt(4.0 / 3)));
  std::vector<double> many; // 31 numbers of deviation 1; quantile 2.0423
  for (int i = 0; i < 31; ++i)
    many.push_back((i - 15) / std::sqrt(31.0 * 32 / 12));
  CHECK(replicate_interval(0, many).high
        == doctest::Approx(2.0423 * std::sqrt(32.0 / 31)).epsilon(1e-3));
}

TEST_CASE("Intervals of five replicates contain the truth in 95 of 100 trials, and their ranges in "
          "two of three") {
  env::Random random(1);
  constexpr int kTrials = 2000;
  int held = 0, in_range = 0;
  for (int i = 0; i < kTrials; ++i) {
    const double estimate = random.normal();
    std::vector<double> replicates;
    for (int k = 0; k < 5; ++k)
      replicates.push_back(estimate + random.normal());
    double mean = 0;
    for (const double each : replicates)
      mean += each / 5;
    held += holds(replicate_interval(mean, replicates), 0) ? 1 : 0;
    const auto [least, most] = std::ranges::minmax(replicates);
    in_range += holds({least, most}, 0) ? 1 : 0;
  }
  CHECK(held > 0.93 * kTrials);
  CHECK(held < 0.97 * kTrials);
  CHECK(in_range == doctest::Approx(kTrials * 2 / 3.0).epsilon(0.05));
}

TEST_CASE(
    "The studentised bootstrap contains the mean of skewed values more often than quantiles do") {
  env::Random random(2);
  constexpr int kTrials = 300, kNumbers = 25;
  int studentised = 0, quantiles = 0;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<double> values;
    for (int k = 0; k < kNumbers; ++k)
      values.push_back(std::exp(random.normal())); // mean exp(0.5)
    const auto statistic = [&](std::span<const std::size_t> drawn) {
      return mean_with_error(values, drawn);
    };
    const auto seed = static_cast<std::uint64_t>(i);
    studentised +=
        holds(studentised_bootstrap(values.size(), statistic, 300, seed), std::exp(0.5)) ? 1 : 0;
    quantiles += holds(bootstrap({values}, &mean_score, 300, seed), std::exp(0.5)) ? 1 : 0;
  }
  CHECK(studentised > 0.88 * kTrials);
  CHECK(quantiles < studentised);
}

TEST_CASE("The bootstrap's interval is unknown if no task has two runs") {
  const Scores single{{4}, {7}};
  const Scores two{{4}, {6, 8}};
  CHECK(std::isnan(bootstrap(single, &mean_score, 100, 1).low));
  CHECK(std::isnan(bootstrap(single, &mean_score, 100, 1).high));
  CHECK(bootstrap(two, &mean_score, 100, 1).low == 5);
  CHECK(std::isnan(bootstrap(single, single, &probability_of_improvement, 100, 1).low));
  CHECK(bootstrap(single, two, &probability_of_improvement, 100, 1).high == 0.75);
}

TEST_CASE("Equal values have an interval of width zero") {
  const std::vector<double> values{4, 4, 4};
  const auto statistic = [&](std::span<const std::size_t> drawn) {
    return mean_with_error(values, drawn);
  };
  const Interval interval = studentised_bootstrap(3, statistic, 100, 1);
  CHECK(interval.low == 4);
  CHECK(interval.high == 4);
}
