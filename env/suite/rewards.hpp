#pragma once

#include <limits>
#include <span>

namespace troupe::env {

/// How a reward falls off outside its bounds. Formulas: Tassa et al., "DeepMind Control Suite"
/// (arXiv 1801.00690), appendix; each is 1 at distance 0 and value_at_margin at `margin`.
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
  double margin = 0; // 0: a hard indicator
  Sigmoid sigmoid = Sigmoid::gaussian;
  double value_at_margin = 0.1; // in (0, 1); 0 too for linear, quadratic, cosine
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// 1 inside [lower, upper], falling to value_at_margin at distance `margin` outside, in [0, 1].
/// Throws std::invalid_argument on bounds, a margin or a value_at_margin out of range.
double tolerance(double x, const Tolerance& t);

/// The mean of the tolerances of all of `values`, of which there must be at least one.
double mean_tolerance(std::span<const double> values, const Tolerance& t);

} // namespace troupe::env
