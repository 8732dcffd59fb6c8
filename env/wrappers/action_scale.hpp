#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Maps actions from [-1, 1] linearly onto the inner bounds; other values are clipped. A dimension
/// without finite inner bounds is passed on unchanged, in the task's unit, and so is a choice.
class ActionScale final : public Wrapper {
public:
  explicit ActionScale(std::unique_ptr<Environment> inner);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  std::vector<double> scaled_;
};

} // namespace troupe::env
