#pragma once

#include <cstdint>

#include "env/minatar/cell_set.hpp"
#include "env/minatar/minatar_game.hpp"

namespace troupe::env::minatar {

/// Breakout: a paddle in the bottom row returns a ball, which moves diagonally, towards three rows
/// of bricks. A brick that is hit disappears and gives a reward of 1. When all bricks are gone and
/// the ball comes down, a new wall appears. The game ends when the ball passes the paddle. It does
/// not become harder.
class Breakout {
public:
  static constexpr std::int64_t kChannels = 4; // paddle, ball, its trail, bricks

  struct State {
    std::int32_t paddle = 4; // its column
    std::int32_t x = 0;      // of the ball
    std::int32_t y = 3;
    std::int32_t step_x = 1; // 1 or -1
    std::int32_t step_y = 1;
    std::int32_t last_x = 0; // where the ball was a step ago
    std::int32_t last_y = 3;
    std::int32_t in_brick = 0; // 1: the ball has just hit a brick and cannot hit the next one
    CellSet bricks = kWall;
  };

  explicit Breakout(bool /*difficulty_ramping*/) {}

  void begin(State& state, Chance& chance) const;
  GameStep step(State& state, Action action, Chance& chance) const;
  void observe(const State& state, Picture& picture) const;
  bool is_valid(const State& state) const;

private:
  static constexpr CellSet kWall = CellSet::block(0, kLastCell, 1, 3);
};

} // namespace troupe::env::minatar
