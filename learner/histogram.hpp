#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learner {

/// Counts of values in bins of equal width from `low` to `high`, and the moments of the values
/// themselves. Values outside the range count in the outermost bins; values that are not finite
/// are left out. Plain data; one thread.
struct Histogram {
  static constexpr std::size_t kBins = 32;
  static constexpr std::size_t kMostBins = 64;

  double low = 0;
  double high = 1;                       // above low
  std::vector<std::int64_t> counts = {}; // [bins]
  std::int64_t count = 0;
  double minimum = 0, maximum = 0, sum = 0, sum_squares = 0; // of the values; 0 without any

  /// Empty, with at most kMostBins bins.
  Histogram() = default;
  Histogram(double lowest, double highest, std::size_t bins = kBins);

  void add(double value);
  /// Adds another one's counts. Throws std::invalid_argument if its bins are others.
  void add(const Histogram& other);
};

/// With bins over the range of the values.
Histogram histogram_of(std::span<const double> values, std::size_t bins = Histogram::kBins);
Histogram histogram_of(std::span<const float> values, std::size_t bins = Histogram::kBins);

} // namespace troupe::learner
