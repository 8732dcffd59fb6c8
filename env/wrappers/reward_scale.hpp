#pragma once

#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Changes rewards to reward * scale + shift. Throws std::invalid_argument unless both are finite
/// and scale is not 0.
class RewardScale final : public Wrapper {
public:
  explicit RewardScale(std::unique_ptr<Environment> inner, double scale, double shift = 0);

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;

private:
  double scale_;
  double shift_;
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
