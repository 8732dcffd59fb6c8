#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Narrows the bounds of the actions to [minimum, maximum] where the inner bounds are wider, and
/// clips actions to them. Choices are unchanged. Throws std::invalid_argument if a dimension's
/// range becomes empty.
class ActionClip final : public Wrapper {
public:
  ActionClip(std::unique_ptr<Environment> inner, double minimum, double maximum);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  std::vector<double> clipped_;
};

} // namespace troupe::env
