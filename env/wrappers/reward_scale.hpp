#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Multiplies rewards by `scale`. Throws std::invalid_argument unless it is finite and not 0.
class RewardScale final : public Wrapper {
public:
  RewardScale(std::unique_ptr<Environment> inner, double scale);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  double scale_;
};

/// Clips rewards to [minimum, maximum]. Throws std::invalid_argument unless minimum < maximum.
class RewardClip final : public Wrapper {
public:
  RewardClip(std::unique_ptr<Environment> inner, double minimum, double maximum);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  double minimum_;
  double maximum_;
};

} // namespace troupe::env
