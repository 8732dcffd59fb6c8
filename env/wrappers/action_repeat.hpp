#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Repeats each action `count` times or until the episode ends. Rewards are added, discounts are
/// multiplied, and the last observation is returned. Throws std::invalid_argument unless 1 <= count
/// <= 1000.
class ActionRepeat final : public Wrapper {
public:
  ActionRepeat(std::unique_ptr<Environment> inner, int count);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  int count_;
};

} // namespace troupe::env
