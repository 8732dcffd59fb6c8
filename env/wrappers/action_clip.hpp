#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Narrows the bounds of the actions to [minimum, maximum] where the inner ones are wider, and
/// clips to them; choices stay as they are. Throws std::invalid_argument when nothing of a
/// dimension's range is left.
class ActionClip final : public Wrapper {
public:
  ActionClip(std::unique_ptr<Environment> inner, double minimum, double maximum);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  std::vector<double> clipped_;
};

} // namespace troupe::env
