#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Actions in [minimum, maximum], by default [-1, 1], mapped linearly onto the inner bounds; other
/// values are clipped. An inner dimension without finite bounds is passed on as it is, in the
/// task's own unit, and so is a choice. Throws std::invalid_argument unless minimum < maximum, both
/// finite.
class ActionScale final : public Wrapper {
public:
  explicit ActionScale(std::unique_ptr<Environment> inner, double minimum = -1, double maximum = 1);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  double minimum_;
  double maximum_;
  std::vector<double> scaled_;
};

} // namespace troupe::env
