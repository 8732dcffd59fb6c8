#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learner {

/// Counts of values in bins of equal width from `low` to `high`, and moments of the values
/// themselves. A value outside the range counts in the first or last bin. Values that are not
/// finite are ignored. Plain data; one thread.
struct Histogram {
  static constexpr std::size_t kBins = 32;
  static constexpr std::size_t kMostBins = 64;

  double low = 0;
  double high = 1;                       // above low
  std::vector<std::int64_t> counts = {}; // [bins]
  std::int64_t count = 0;
  double minimum = 0, maximum = 0, sum = 0, sum_squares = 0; // of the values; 0 if there are none

  /// Empty, with at most kMostBins bins.
  Histogram() = default;
  Histogram(double lowest, double highest, std::size_t bins = kBins);

  void add(double value);
  /// Adds another histogram's counts. Throws std::invalid_argument if its bins differ.
  void add(const Histogram& other);
};

/// Returns a histogram whose bins cover the range of the values.
Histogram histogram_of(std::span<const double> values, std::size_t bins = Histogram::kBins);
Histogram histogram_of(std::span<const float> values, std::size_t bins = Histogram::kBins);

} // namespace troupe::learner
