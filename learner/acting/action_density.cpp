#include "learner/acting/action_density.hpp"

#include <cmath>
#include <numbers>

namespace troupe::learner {
namespace {

const double kLogRootTau = 0.5 * std::log(2 * std::numbers::pi);
const double kRoundedToBound = std::atanh(1 - 0x1p-25); // from here on, tanh is 1 in float32
constexpr double kFarTail = 30; // deviations; beyond it erfc() nears underflow

double log_density(double x) {
  return -0.5 * x * x - kLogRootTau;
}

/// The log-probability that a standard normal variable is at least x.
double log_tail(double x) {
  if (x > kFarTail) // the first terms of Mills' ratio
    return log_density(x) - std::log(x) + std::log1p(-1 / (x * x));
  return std::log(0.5 * std::erfc(x / std::numbers::sqrt2));
}

} // namespace

double log_clipped_normal(double mean, double deviation, double action) {
  if (action >= 1)
    return log_tail((1 - mean) / deviation);
  if (action <= -1)
    return log_tail((1 + mean) / deviation);
  return log_density((action - mean) / deviation) - std::log(deviation);
}

double log_squashed_normal(double mean, double deviation, double action) {
  if (action >= 1)
    return log_tail((kRoundedToBound - mean) / deviation);
  if (action <= -1)
    return log_tail((kRoundedToBound + mean) / deviation);
  return log_density((std::atanh(action) - mean) / deviation) - std::log(deviation)
         - std::log1p(-action * action);
}

} // namespace troupe::learner
