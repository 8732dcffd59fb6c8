#pragma once

#include <algorithm>
#include <cmath>

namespace troupe::replay {

constexpr double kLeastWeight = 1e-150; // of any positive priority
constexpr double kNoWeight = 1e-300;    // of an item where all have none: negligible beside others

inline double priority_weight(double priority, double exponent) {
  if (priority == 0)
    return 0;
  return std::max(kLeastWeight, exponent == 1 ? priority : std::pow(priority, exponent));
}

} // namespace troupe::replay
