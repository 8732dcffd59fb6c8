#pragma once

#include <cstdint>

#include "env/minatar/bounded_list.hpp"
#include "env/minatar/minatar_game.hpp"

namespace troupe::env::minatar {

/// Seaquest: the player's submarine shoots at fish and submarines (a reward of 1 each) and picks up
/// to six divers. Under water it uses oxygen, which is refilled by surfacing. Surfacing costs a
/// diver; with six divers aboard it gives a reward of up to 10 for the oxygen left. After each
/// surfacing enemies appear more often and move faster. The game ends when an enemy or its shot
/// hits the player, when the oxygen is used up, or when the player surfaces with no diver aboard.
///
/// Surprising, but as in MinAtar: surfacing with six divers leaves -1 aboard, and from then on the
/// player may surface again and again. A submarine that leaves or is hit may still shoot.
class Seaquest {
public:
  // The player's front and back, its shots, trails, enemy shots, fish, enemy submarines, oxygen,
  // divers aboard, divers.
  static constexpr std::int64_t kChannels = 10;

  struct Shot {
    std::int32_t x = 0;
    std::int32_t y = 0;
    std::int32_t step = 0; // 1: to the right, -1: to the left
  };
  struct Swimmer { // a fish or a diver
    std::int32_t x = 0;
    std::int32_t y = 0;
    std::int32_t step = 0;
    std::int32_t move_timer = 0; // steps until it moves
  };
  struct Submarine {
    std::int32_t x = 0;
    std::int32_t y = 0;
    std::int32_t step = 0;
    std::int32_t move_timer = 0;
    std::int32_t shot_timer = 0; // steps until it shoots
  };

  // No list ever becomes full. At the fastest an enemy appears every step, is gone after 30 steps,
  // and has one shot in flight; the player shoots every 5 steps, and a shot is gone after 10; a
  // diver appears every 30 steps and is gone after 60.
  struct State {
    std::int32_t x = 5;
    std::int32_t y = 0;
    std::int32_t facing = -1; // 1: to the right, -1: to the left
    std::int32_t oxygen = 200;
    std::int32_t aboard = 0;   // number of divers
    std::int32_t surfaced = 1; // 1: at the surface, and already charged for it
    std::int32_t shot_timer = 0;
    std::int32_t enemy_timer = 20; // steps until the next enemy appears
    std::int32_t enemy_interval = 20;
    std::int32_t diver_timer = 30;
    std::int32_t move_interval = 5; // of enemies
    std::int32_t ramps = 0;         // how often the game has become faster
    BoundedList<Shot, 4> shots{};   // the player's
    BoundedList<Shot, 48> enemy_shots{};
    BoundedList<Swimmer, 32> fish{};
    BoundedList<Submarine, 32> submarines{};
    BoundedList<Swimmer, 4> divers{};
  };

  explicit Seaquest(bool difficulty_ramping) : ramping_(difficulty_ramping) {}

  void begin(State&, Chance&) const {}
  GameStep step(State& state, Action action, Chance& chance) const;
  void observe(const State& state, Picture& picture) const;
  bool is_valid(const State& state) const;

private:
  static void spawn_enemy(State& state, Chance& chance);
  static void spawn_diver(State& state, Chance& chance);
  static void move_player(State& state, Action action);
  static void move_shots(State& state, GameStep& made);
  static void move_divers(State& state);
  static void move_submarines(State& state, GameStep& made);
  static void move_enemy_shots(State& state, GameStep& made);
  static void move_fish(State& state, GameStep& made);
  void breathe(State& state, GameStep& made) const;
  double surface(State& state) const;

  bool ramping_;
};

} // namespace troupe::env::minatar
