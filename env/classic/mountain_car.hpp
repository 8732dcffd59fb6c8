#pragma once

#include "env/classic/classic_task.hpp"

namespace troupe::env::classic {

/// MountainCar-v0: a car in a valley, whose engine is too weak for the hill, accelerates to the
/// left (0), not at all (1) or to the right (2). Moore, "Efficient memory-based learning for robot
/// control".
class MountainCar {
public:
  struct State {
    double position = 0;
    double velocity = 0; // position per step
  };

  MountainCar(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;

private:
  EnvironmentSpec spec_;
  double goal_velocity_;
};

} // namespace troupe::env::classic
