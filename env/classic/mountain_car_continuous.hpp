#pragma once

#include "env/classic/classic_task.hpp"

namespace troupe::env::classic {

/// MountainCarContinuous-v0: MountainCar with a force in [-1, 1], which costs reward, and another
/// goal. As in Gymnasium, the state is rounded to float32 after each step and computed in float32
/// from then on. Actions are rounded to float32.
class MountainCarContinuous {
public:
  struct State {
    double position = 0;
    double velocity = 0;       // position per step
    std::uint64_t rounded = 0; // 1: after the first step, when both are float32 numbers
  };

  MountainCarContinuous(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;

private:
  EnvironmentSpec spec_;
  double goal_velocity_;
};

} // namespace troupe::env::classic
