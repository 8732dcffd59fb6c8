#pragma once

#include "env/random.hpp"
#include "env/wrappers/wrapper.hpp"

namespace troupe::env {

/// Adds Gaussian noise to every action that is not a choice, as a worn actuator would; the sum is
/// clipped to the bounds. `deviation` is the standard deviation in halves of each dimension's
/// range: with bounds [-1, 1] it is the standard deviation itself. The noise is drawn from the
/// episode's seed, and its state is part of the saved state. Throws std::invalid_argument if the
/// deviation is not from 0 to 10 or if an action has no finite bounds.
class ActionNoise final : public Wrapper {
public:
  ActionNoise(std::unique_ptr<Environment> inner, double deviation);

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

private:
  double deviation_;
  Random random_;
  std::vector<double> noisy_;
};

} // namespace troupe::env
