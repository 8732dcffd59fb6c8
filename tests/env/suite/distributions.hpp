#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <vector>

/// Statistical tests of the distribution of a number, for tests with fixed seeds. The thresholds
/// let a correct distribution fail about once in 10^4 checks.
namespace troupe::env::testing {

using Sample = std::vector<double>;
using Cdf = std::function<double(double)>; // of a continuous distribution

inline constexpr double kKolmogorov = 2.2; // sqrt(n) times the largest distance; p = 1.3e-4
inline constexpr double kDeviations = 4.2; // standard deviations of a mean or a variance

/// Kolmogorov-Smirnov statistic: the largest distance between the empirical and the exact
/// distribution, times sqrt(n).
inline double kolmogorov(Sample sample, const Cdf& cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double worst = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double exact = cdf(sample[i]);
    const auto below = static_cast<double>(i);
    worst = std::max({worst, exact - below / n, (below + 1) / n - exact});
  }
  return worst * std::sqrt(n);
}

/// The two-sample statistic, normalised in the same way.
inline double kolmogorov(Sample a, Sample b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  double worst = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x)
      ++i;
    while (j < b.size() && b[j] <= x)
      ++j;
    worst = std::max(worst, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  return worst * std::sqrt(n * m / (n + m));
}

inline double mean(const Sample& sample) {
  double sum = 0;
  for (const double x : sample)
    sum += x;
  return sum / static_cast<double>(sample.size());
}

inline void check_cdf(const std::string& what, const Sample& sample, const Cdf& cdf) {
  CAPTURE(what);
  REQUIRE(sample.size() >= 500);
  CHECK(kolmogorov(sample, cdf) < kKolmogorov);
}

inline void check_same(const std::string& what, const Sample& ours, const Sample& theirs) {
  CAPTURE(what);
  REQUIRE(std::min(ours.size(), theirs.size()) >= 500);
  CHECK(kolmogorov(ours, theirs) < kKolmogorov);
}

/// Checks that the sample is uniform in [low, high] and reaches both ends.
inline void check_uniform(const std::string& what, const Sample& sample, double low, double high) {
  check_cdf(what, sample, [&](double x) { return (x - low) / (high - low); });
  CAPTURE(what);
  const auto [least, most] = std::minmax_element(sample.begin(), sample.end());
  const double rounding = 1e-12 * std::max(std::abs(low), std::abs(high));
  const double gap = 10 * (high - low) / static_cast<double>(sample.size()); // p = e^-10
  CHECK(*least >= low - rounding);
  CHECK(*least <= low + gap);
  CHECK(*most >= high - gap);
  CHECK(*most <= high + rounding);
}

inline double normal_cdf(double x) {
  return .5 * std::erfc(-x / std::numbers::sqrt2);
}

inline void check_normal(const std::string& what, const Sample& sample, double centre,
                         double deviation) {
  check_cdf(what, sample, [&](double x) { return normal_cdf((x - centre) / deviation); });
  CAPTURE(what);
  const auto n = static_cast<double>(sample.size());
  CHECK(std::abs(mean(sample) - centre) < kDeviations * deviation / std::sqrt(n));
  double squares = 0;
  for (const double x : sample)
    squares += (x - centre) * (x - centre) / (deviation * deviation);
  CHECK(std::abs(squares / n - 1) < kDeviations * std::sqrt(2 / n));
}

/// Checks a value that is not random.
inline void check_constant(const std::string& what, const Sample& sample, double value) {
  CAPTURE(what);
  CHECK(std::all_of(sample.begin(), sample.end(), [&](double x) { return x == value; }));
}

/// Checks how often an event of known probability happens.
inline void check_probability(const std::string& what, std::span<const bool> happened, double p) {
  CAPTURE(what);
  const auto n = static_cast<double>(happened.size());
  const auto count = static_cast<double>(std::count(happened.begin(), happened.end(), true));
  CHECK(std::abs(count / n - p) < kDeviations * std::sqrt(p * (1 - p) / n));
}

/// Checks two quantities that are drawn independently.
inline void check_uncorrelated(const std::string& what, const Sample& a, const Sample& b) {
  CAPTURE(what);
  const double mean_a = mean(a);
  const double mean_b = mean(b);
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  CHECK(std::abs(ab / std::sqrt(aa * bb)) < 4.5 / std::sqrt(static_cast<double>(a.size())));
}

/// Mean of `f` under the standard normal distribution, computed by the trapezoidal rule.
inline double normal_mean(const std::function<double(double)>& f) {
  constexpr double kStep = 1.0 / 64;
  double sum = 0;
  for (int i = -8 * 64; i <= 8 * 64; ++i)
    sum += f(i * kStep) * std::exp(-.5 * (i * kStep) * (i * kStep));
  return sum * kStep / std::sqrt(2 * std::numbers::pi);
}

/// Distribution of one coordinate of a random direction, uniform on the sphere in `dimensions` (2
/// to 10) dimensions. Its density is proportional to (1 - x^2)^((dimensions - 3) / 2); the density
/// of the angle to the axis is proportional to sin^(dimensions - 2).
inline Cdf sphere_coordinate_cdf(int dimensions) {
  const auto below = [dimensions](double x) { // integral of sin^(d - 2) from acos(x) to pi
    const double from = std::acos(std::clamp(x, -1.0, 1.0));
    constexpr int kSteps = 256;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
      const double angle = from + (i + .5) * (std::numbers::pi - from) / kSteps;
      sum += std::pow(std::sin(angle), dimensions - 2);
    }
    return sum * (std::numbers::pi - from) / kSteps;
  };
  return [below](double x) { return below(x) / below(1); };
}

/// A table of draws, one column per number that `read` writes after each of `resets` resets.
class Draws {
public:
  Draws(std::size_t columns, std::size_t rows) : columns_(columns, Sample(rows)) {}
  void set(std::size_t row, std::size_t column, double value) { columns_[column][row] = value; }
  const Sample& operator[](std::size_t column) const { return columns_[column]; }
  std::size_t columns() const { return columns_.size(); }

private:
  std::vector<Sample> columns_;
};

} // namespace troupe::env::testing
