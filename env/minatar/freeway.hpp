#pragma once

#include <array>
#include <cstdint>

#include "env/minatar/minatar_game.hpp"

namespace troupe::env::minatar {

/// Freeway: a chicken crosses eight lanes from the bottom row to the top row, at most one row in
/// three steps. Reaching the top gives a reward of 1; the chicken then starts again at the bottom,
/// and the cars get new speeds. A car that hits the chicken sends it back to the bottom. The game
/// ends after 2501 steps. It does not become harder.
class Freeway {
public:
  static constexpr std::int64_t kChannels = 7; // chicken, cars, trails of cars of periods 1 to 5

  struct Car {
    std::int32_t x = 0;
    std::int32_t step = 1;   // 1: to the right, -1: to the left
    std::int32_t period = 1; // 1 to 5: steps that the car waits between two moves
    std::int32_t timer = 1;  // steps left to wait
  };
  struct State {
    std::int32_t y = kLastCell;      // row of the chicken, whose column is 4
    std::int32_t move_timer = 3;     // steps until it may move again
    std::int32_t steps_left = 2'500; // steps left after the next one
    std::array<Car, 8> cars{};       // in rows 1 to 8
  };

  explicit Freeway(bool /*difficulty_ramping*/) {}

  void begin(State& state, Chance& chance) const;
  GameStep step(State& state, Action action, Chance& chance) const;
  void observe(const State& state, Picture& picture) const;
  bool is_valid(const State& state) const;

private:
  static void draw_cars(State& state, Chance& chance);
  static void move_chicken(State& state, Action action);
  static void move_cars(State& state);
};

} // namespace troupe::env::minatar
