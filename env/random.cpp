#include "env/random.hpp"

#include <cmath>
#include <numbers>

namespace troupe::env {

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform())); // 1 - u is in (0, 1]
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

} // namespace troupe::env
