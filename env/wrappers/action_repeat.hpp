#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Repeats each action `count` times or until the episode ends: rewards are added up, discounts
/// multiplied, the last observation is kept. 1 <= count <= 1000, else std::invalid_argument.
class ActionRepeat final : public Wrapper {
public:
  ActionRepeat(std::unique_ptr<Environment> inner, int count);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  int count_;
};

} // namespace troupe::env
