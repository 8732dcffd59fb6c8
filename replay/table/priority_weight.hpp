#pragma once

#include <algorithm>
#include <cmath>

namespace troupe::replay {

constexpr double kLeastWeight = 1e-150; // least weight of a positive priority
// Weight of every item if all priorities are 0; negligible beside any other weight
constexpr double kNoWeight = 1e-300;

inline double priority_weight(double priority, double exponent) {
  if (priority == 0)
    return 0;
  return std::max(kLeastWeight, exponent == 1 ? priority : std::pow(priority, exponent));
}

} // namespace troupe::replay
