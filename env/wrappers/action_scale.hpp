#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Maps actions from [minimum, maximum], by default [-1, 1], linearly onto the inner bounds; other
/// values are clipped. A dimension without finite inner bounds is passed on unchanged, in the
/// task's unit, and so is a choice. Throws std::invalid_argument unless minimum < maximum and both
/// are finite.
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
