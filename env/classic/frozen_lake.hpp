#pragma once

#include <array>
#include <string_view>

#include "env/classic/classic_task.hpp"
#include "env/classic/transitions.hpp"

namespace troupe::env::classic {

/// FrozenLake-v1 and FrozenLake8x8-v1: walk over a square of ice from the first tile to the last
/// one without falling into a hole. The moves left (0), down (1), right (2) and up (3) may slip
/// sideways. The state is row * columns + column.
class FrozenLake {
public:
  struct State {
    std::int64_t tile = 0;
  };

  FrozenLake(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;
  bool is_valid(const State& state) const;

  /// A hole or the goal leads to itself.
  Transitions transitions(std::int64_t tile, std::int64_t action) const;

private:
  Transition move(std::int64_t tile, std::int64_t direction, double probability) const;

  std::string_view map_; // row by row: S start, F frozen, H hole, G goal
  std::int64_t side_;    // number of rows, and of columns
  EnvironmentSpec spec_;
  bool slippery_;
  double success_rate_;
  std::array<double, 3> rewards_; // for the goal, a hole, ice
};

} // namespace troupe::env::classic
