#pragma once

#include "env/classic/classic_task.hpp"

namespace troupe::env::classic {

/// Pendulum-v1: a torque in [-2, 2] at the joint of a pendulum must swing it up and keep it there.
/// An episode never terminates. Actions are rounded to float32.
class Pendulum {
public:
  struct State {
    double angle = 0;    // from upright, radians, not wrapped
    double velocity = 0; // radians/second
  };

  Pendulum(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;

private:
  EnvironmentSpec spec_;
  double gravity_; // metres/second²
};

} // namespace troupe::env::classic
