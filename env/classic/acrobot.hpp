#pragma once

#include <array>

#include "env/classic/classic_task.hpp"

namespace troupe::env::classic {

/// Acrobot-v1: two links hang from a fixed joint. A torque of -1, 0 or 1 at the joint between them
/// (actions 0, 1, 2) must swing the tip above the line one link above the fixed joint. The dynamics
/// are those of Sutton and Barto, "Reinforcement Learning", or of Sutton's paper of 1996.
class Acrobot {
public:
  struct State {
    std::array<double, 4> numbers{}; // angles of first and second joint, their velocities; radians
  };

  Acrobot(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;

private:
  using Numbers = std::array<double, 4>;
  Numbers derivative(const Numbers& numbers, double torque) const;

  EnvironmentSpec spec_;
  bool nips_; // the paper's dynamics
};

} // namespace troupe::env::classic
