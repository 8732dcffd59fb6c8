#pragma once

#include <array>
#include <cstdint>

#include "env/minatar/minatar_game.hpp"

namespace troupe::env::minatar {

/// Asterix: the player moves in all four directions between the top and the bottom row. Gold and
/// enemies cross the eight rows in between, at most one per row. Touching gold gives a reward of 1
/// and removes it; touching an enemy ends the game. Over time gold and enemies appear more often
/// and move faster.
class Asterix {
public:
  static constexpr std::int64_t kChannels = 4; // player, enemies, trails, gold

  struct Visitor {
    std::int32_t kind = 0; // 0: none, 1: an enemy, 2: gold
    std::int32_t x = 0;
    std::int32_t step = 0; // 1: to the right, -1: to the left
  };
  struct State {
    std::int32_t x = 5;
    std::int32_t y = 5;
    std::array<Visitor, 8> visitors{}; // in rows 1 to 8
    // Steps until the next event, and steps between events.
    std::int32_t spawn_timer = 10;
    std::int32_t spawn_interval = 10;
    std::int32_t move_timer = 5;
    std::int32_t move_interval = 5;
    std::int32_t ramp_timer = 100;
    std::int32_t ramps = 0; // how often the game has become faster
  };

  explicit Asterix(bool difficulty_ramping) : ramping_(difficulty_ramping) {}

  void begin(State&, Chance&) const {}
  GameStep step(State& state, Action action, Chance& chance) const;
  void observe(const State& state, Picture& picture) const;
  bool is_valid(const State& state) const;

private:
  static void spawn(State& state, Chance& chance);
  static void move_player(State& state, Action action);
  static void move_visitors(State& state, GameStep& made);
  static void meet(State& state, std::int32_t row, GameStep& made);
  static void ramp(State& state);

  bool ramping_;
};

} // namespace troupe::env::minatar
