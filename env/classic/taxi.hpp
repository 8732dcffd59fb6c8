#pragma once

#include "env/classic/classic_task.hpp"
#include "env/classic/transitions.hpp"

namespace troupe::env::classic {

/// Taxi-v4: drive down (0), up (1), right (2) or left (3) on a grid of 5 by 5 with walls, pick up a
/// passenger (4) at one of four stands and drop them off (5) at another. Dietterich, "Hierarchical
/// reinforcement learning with the MAXQ value function decomposition".
/// The state is ((row * 5 + column) * 5 + passenger) * 4 + destination; the passenger is at stand 0
/// to 3 or in the taxi (4).
class Taxi {
public:
  struct State {
    std::int64_t number = 0;
    std::int64_t fickle = 0; // 1: the destination changes at the passenger's first move
  };

  Taxi(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;
  bool is_valid(const State& state) const;

  /// The transitions of a passenger who is not fickle.
  Transitions transitions(std::int64_t number, std::int64_t action) const;

private:
  EnvironmentSpec spec_;
  double straight_probability_; // that a move goes straight; below 1 when it rains
  double fickle_probability_;   // that the passenger of an episode is fickle
};

} // namespace troupe::env::classic
