#pragma once

#include <limits>
#include <span>

namespace troupe::env {

/// How a reward decreases outside its bounds. Each function is 1 at distance 0 and value_at_margin
/// at distance `margin`. Formulas: Tassa et al., "DeepMind Control Suite" (arXiv 1801.00690),
/// appendix.
enum class Sigmoid {
  gaussian,
  hyperbolic,
  long_tail,
  reciprocal,
  cosine,
  linear,
  quadratic,
  tanh_squared
};

struct Tolerance {
  double lower = 0;
  double upper = 0;
  double margin = 0; // 0: the reward is 0 outside the bounds
  Sigmoid sigmoid = Sigmoid::gaussian;
  double value_at_margin = 0.1; // in (0, 1); may be 0 for linear, quadratic and cosine
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns 1 inside [lower, upper], and a value that decreases to value_at_margin at distance
/// `margin` outside. The result is in [0, 1]. Throws std::invalid_argument if the bounds, the
/// margin or value_at_margin are out of range.
double tolerance(double x, const Tolerance& t);

/// Returns the mean tolerance of `values`. Throws std::invalid_argument if there are none.
double mean_tolerance(std::span<const double> values, const Tolerance& t);

} // namespace troupe::env
