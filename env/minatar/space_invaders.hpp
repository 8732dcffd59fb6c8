#pragma once

#include <cstdint>

#include "env/minatar/cell_set.hpp"
#include "env/minatar/minatar_game.hpp"

namespace troupe::env::minatar {

/// SpaceInvaders: a cannon in the bottom row shoots at a block of aliens, which move sideways,
/// descend by one row at each wall, and shoot back from the column nearest to the cannon. An alien
/// that is hit gives a reward of 1; the fewer aliens are left, the faster they move. When all are
/// gone, a new, faster block appears. The game ends when an alien or a shot hits the cannon, or
/// when aliens reach the bottom.
class SpaceInvaders {
public:
  static constexpr std::int64_t kChannels = 6; // cannon, aliens, aliens moving left, aliens moving
                                               // right, the cannon's shots, the aliens' shots

  struct State {
    std::int32_t cannon = 5;     // its column
    std::int32_t direction = -1; // of the aliens; 1: right, -1: left
    CellSet shots{};             // the cannon's
    CellSet bombs{};             // the aliens'
    CellSet aliens = kBlock;
    // Steps until the next possible event.
    std::int32_t shot_timer = 0;
    std::int32_t bomb_timer = 10;
    std::int32_t move_timer = 12;
    std::int32_t move_interval = 12; // while many aliens are left
  };

  explicit SpaceInvaders(bool difficulty_ramping) : ramping_(difficulty_ramping) {}

  void begin(State&, Chance&) const {}
  GameStep step(State& state, Action action, Chance& chance) const;
  void observe(const State& state, Picture& picture) const;
  bool is_valid(const State& state) const;

private:
  static constexpr CellSet kBlock = CellSet::block(2, 7, 0, 3);

  static void move_cannon(State& state, Action action);
  static bool move_aliens(State& state);
  static void drop_bomb(State& state);

  bool ramping_;
};

} // namespace troupe::env::minatar
