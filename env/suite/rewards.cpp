#include "env/suite/rewards.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace troupe::env {

namespace {

double falloff(double x, double value, Sigmoid sigmoid) {
  switch (sigmoid) {
  case Sigmoid::gaussian: {
    const double scaled = x * std::sqrt(-2 * std::log(value));
    return std::exp(-0.5 * scaled * scaled);
  }
  case Sigmoid::hyperbolic:
    return 1 / std::cosh(x * std::acosh(1 / value));
  case Sigmoid::long_tail: {
    const double scaled = x * std::sqrt(1 / value - 1);
    return 1 / (scaled * scaled + 1);
  }
  case Sigmoid::reciprocal:
    return 1 / (std::abs(x) * (1 / value - 1) + 1);
  case Sigmoid::cosine: {
    const double scaled = x * std::acos(2 * value - 1) / std::numbers::pi;
    return std::abs(scaled) < 1 ? (1 + std::cos(std::numbers::pi * scaled)) / 2 : 0;
  }
  case Sigmoid::linear: {
    const double scaled = x * (1 - value);
    return std::abs(scaled) < 1 ? 1 - scaled : 0;
  }
  case Sigmoid::quadratic: {
    const double scaled = x * std::sqrt(1 - value);
    return std::abs(scaled) < 1 ? 1 - scaled * scaled : 0;
  }
  case Sigmoid::tanh_squared: {
    const double t = std::tanh(x * std::atanh(std::sqrt(1 - value)));
    return 1 - t * t;
  }
  }
  throw std::invalid_argument("unknown sigmoid");
}

} // namespace

double tolerance(double x, const Tolerance& t) {
  const bool zero_allowed = t.sigmoid == Sigmoid::cosine || t.sigmoid == Sigmoid::linear
                            || t.sigmoid == Sigmoid::quadratic;
  if (!(t.lower <= t.upper))
    throw std::invalid_argument("tolerance: lower bound " + std::to_string(t.lower)
                                + " must not exceed upper bound " + std::to_string(t.upper));
  if (!(t.margin >= 0))
    throw std::invalid_argument("tolerance: margin " + std::to_string(t.margin)
                                + " must not be negative");
  if (t.lower <= x && x <= t.upper)
    return 1;
  if (t.margin == 0)
    return 0;
  if (!(t.value_at_margin < 1
        && (t.value_at_margin > 0 || (zero_allowed && t.value_at_margin == 0))))
    throw std::invalid_argument("tolerance: value_at_margin " + std::to_string(t.value_at_margin)
                                + " must be in (0, 1)");
  return falloff((x < t.lower ? t.lower - x : x - t.upper) / t.margin, t.value_at_margin,
                 t.sigmoid);
}

double mean_tolerance(std::span<const double> values, const Tolerance& t) {
  if (values.empty())
    throw std::invalid_argument("tolerance: cannot take the mean of no values");
  double sum = 0;
  for (const double value : values)
    sum += tolerance(value, t);
  return sum / static_cast<double>(values.size());
}

} // namespace troupe::env
