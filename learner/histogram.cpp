#include "learner/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace troupe::learner {

namespace {

template <class T>
Histogram over_range(std::span<const T> values, std::size_t bins) {
  double least = 0, most = 0;
  bool any = false;
  for (const T value : values) {
    if (!std::isfinite(value))
      continue;
    least = any ? std::min<double>(least, value) : value;
    most = any ? std::max<double>(most, value) : value;
    any = true;
  }
  if (!(most / 2 > least / 2)) { // a single value: bins around it, even if it is huge
    const double half = std::max(0.5, std::abs(least) / 1000);
    least -= half;
    most += half;
  }
  Histogram made(least, most, bins);
  for (const T value : values)
    made.add(value);
  return made;
}

} // namespace

Histogram::Histogram(double lowest, double highest, std::size_t bins)
    : low(lowest), high(highest), counts(std::clamp<std::size_t>(bins, 1, kMostBins)) {
  // The halves must differ, too: add() divides by their difference.
  if (!(highest / 2 > lowest / 2) || !std::isfinite(lowest) || !std::isfinite(highest))
    throw std::invalid_argument("a histogram from " + std::to_string(lowest) + " to "
                                + std::to_string(highest) + ": the end must be above the start");
}

void Histogram::add(double value) {
  if (!std::isfinite(value) || counts.empty())
    return;
  const auto bins = static_cast<double>(counts.size());
  // Halve each number first, because the width of a finite range may be infinite.
  const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
  ++counts[static_cast<std::size_t>(std::clamp(std::floor(share * bins), 0.0, bins - 1))];
  minimum = count == 0 ? value : std::min(minimum, value);
  maximum = count == 0 ? value : std::max(maximum, value);
  ++count;
  sum += value;
  sum_squares += value * value;
}

void Histogram::add(const Histogram& other) {
  if (other.counts.size() != counts.size() || other.low != low || other.high != high)
    throw std::invalid_argument("histograms with other bins cannot be added");
  if (other.count == 0)
    return;
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += other.counts[i];
  minimum = count == 0 ? other.minimum : std::min(minimum, other.minimum);
  maximum = count == 0 ? other.maximum : std::max(maximum, other.maximum);
  count += other.count;
  sum += other.sum;
  sum_squares += other.sum_squares;
}

Histogram histogram_of(std::span<const double> values, std::size_t bins) {
  return over_range(values, bins);
}

Histogram histogram_of(std::span<const float> values, std::size_t bins) {
  return over_range(values, bins);
}

} // namespace troupe::learner
