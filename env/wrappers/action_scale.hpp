#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Actions in [-1, 1], mapped linearly onto the inner bounds; what lies outside is clipped. Throws
/// std::invalid_argument when the inner action has no finite bounds.
class ActionScale final : public Wrapper {
public:
  explicit ActionScale(std::unique_ptr<Environment> inner);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  std::vector<double> scaled_;
};

} // namespace troupe::env
