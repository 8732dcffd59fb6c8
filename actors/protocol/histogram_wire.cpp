#include "actors/protocol/histogram_wire.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "actors/protocol/counters.hpp"

namespace troupe::actors {

void put(const learner::Histogram& histogram, wire::Histogram& out) {
  out.set_low(histogram.low);
  out.set_high(histogram.high);
  out.mutable_counts()->Assign(histogram.counts.begin(), histogram.counts.end());
  out.set_count(histogram.count);
  out.set_minimum(histogram.minimum);
  out.set_maximum(histogram.maximum);
  out.set_sum(histogram.sum);
  out.set_sum_squares(histogram.sum_squares);
}

learner::Histogram histogram_of(const wire::Histogram& in) {
  const auto bins = static_cast<std::size_t>(in.counts_size());
  if (bins < 1 || bins > learner::Histogram::kMostBins)
    throw std::invalid_argument("a histogram of " + std::to_string(bins) + " bins: from 1 to "
                                + std::to_string(learner::Histogram::kMostBins) + " are possible");
  learner::Histogram made(in.low(), in.high(), bins);
  for (std::size_t i = 0; i < bins; ++i)
    made.counts[i] = std::clamp<std::int64_t>(in.counts(static_cast<int>(i)), 0, kMostCount);
  made.count = std::clamp<std::int64_t>(in.count(), 0, kMostCount);
  made.minimum = in.minimum();
  made.maximum = in.maximum();
  made.sum = in.sum();
  made.sum_squares = in.sum_squares();
  return made;
}

} // namespace troupe::actors
