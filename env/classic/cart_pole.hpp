#pragma once

#include "env/classic/classic_task.hpp"

namespace troupe::env::classic {

/// CartPole-v1: a cart pushed to the left (0) or right (1) keeps a pole upright. Barto, Sutton and
/// Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems".
class CartPole {
public:
  struct State {
    double position = 0;         // of the cart, metres
    double velocity = 0;         // metres/second
    double angle = 0;            // of the pole from upright, radians
    double angular_velocity = 0; // radians/second
  };

  CartPole(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;

private:
  EnvironmentSpec spec_;
  bool sutton_barto_reward_; // -1 at the end instead of 1 per step
};

} // namespace troupe::env::classic
