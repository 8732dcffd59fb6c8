// Situations that recordings rarely contain. The MinAtar package behaves the same from the same
// states.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "env/minatar/asterix.hpp"
#include "env/minatar/breakout.hpp"
#include "env/minatar/seaquest.hpp"
#include "env/minatar/space_invaders.hpp"

using namespace troupe::env;
using namespace troupe::env::minatar;

namespace {

/// Returns these numbers in order and counts the draws.
class ScriptedChance final : public Chance {
public:
  explicit ScriptedChance(std::vector<double> numbers = {}) : numbers_(std::move(numbers)) {}

  double uniform() override { return numbers_.at(drawn++); }
  std::int32_t one_below(std::int32_t) override {
    return static_cast<std::int32_t>(numbers_.at(drawn++));
  }

  std::size_t drawn = 0;

private:
  std::vector<double> numbers_;
};

} // namespace

TEST_CASE("Nothing enters Asterix while all rows are taken") {
  const Asterix rules(true);
  Asterix::State state{.x = 9, .spawn_timer = 0};
  state.visitors.fill({.kind = 1, .x = 2, .step = 1});
  ScriptedChance two({.4, .3});
  rules.step(state, Action::none, two);
  CHECK(two.drawn == 2);
  CHECK(state.spawn_timer == 9);

  state.spawn_timer = 0;
  state.visitors[6] = {};
  ScriptedChance three({.6, .34, 0});
  rules.step(state, Action::none, three);
  CHECK(three.drawn == 3);
  CHECK(state.visitors[6].kind == 1);
  CHECK(state.visitors[6].x == 9);
  CHECK(state.visitors[6].step == -1);
}

TEST_CASE("Breakout's ball passes through the second of two bricks that it hits in succession") {
  const Breakout rules(true);
  ScriptedChance none;
  Breakout::State state{.x = 4, .y = 2, .step_x = 1, .step_y = -1, .bricks = {}};
  state.bricks.insert(5, 1);
  state.bricks.insert(6, 3);
  CHECK(rules.step(state, Action::none, none).reward == 1);
  CHECK(state.x == 5);
  CHECK(state.y == 2);
  CHECK(rules.step(state, Action::none, none).reward == 0);
  CHECK(state.x == 6);
  CHECK(state.y == 3);
  CHECK(state.bricks.contains(6, 3));
  CHECK(rules.step(state, Action::none, none).reward == 0);
  CHECK(state.y == 4);
}

TEST_CASE("An enemy submarine that is hit still shoots if a shot is due in the same step") {
  const Seaquest rules(true);
  ScriptedChance none;
  Seaquest::State state{.x = 1, .y = 3, .facing = 1};
  state.shots.append({.x = 3, .y = 3, .step = 1});
  state.submarines.append({.x = 5, .y = 3, .step = -1, .move_timer = 0, .shot_timer = 0});
  const GameStep made = rules.step(state, Action::none, none);
  CHECK(made.reward == 1);
  CHECK_FALSE(made.terminated);
  CHECK(state.submarines.size() == 0);
  CHECK(state.shots.size() == 0);
  REQUIRE(state.enemy_shots.size() == 1);
  CHECK(state.enemy_shots[0].x == 3);
}

TEST_CASE("Surfacing in Seaquest with six divers pays for the oxygen and leaves -1 divers aboard") {
  const Seaquest rules(true);
  ScriptedChance none;
  Seaquest::State state{.y = 1, .oxygen = 100, .aboard = 6, .surfaced = 0};
  CHECK(rules.step(state, Action::up, none).reward == 5);
  CHECK(state.aboard == -1);
  CHECK(state.oxygen == 200);
  CHECK(state.enemy_interval == 19);
  CHECK(state.move_interval == 5);
  rules.step(state, Action::down, none);
  const GameStep again = rules.step(state, Action::up, none);
  CHECK(again.reward == 0);
  CHECK_FALSE(again.terminated);
  CHECK(state.aboard == -2);
  CHECK(state.enemy_interval == 18);
  CHECK(state.move_interval == 4);
}

TEST_CASE("Aliens that reach the wall in the bottom row end SpaceInvaders") {
  const SpaceInvaders rules(true);
  ScriptedChance none;
  SpaceInvaders::State state{.cannon = 3, .direction = 1, .aliens = {}, .move_timer = 0};
  state.aliens.insert(9, 9);
  state.aliens.insert(2, 3);
  CHECK(rules.step(state, Action::none, none).terminated);
  CHECK(state.direction == -1);
  CHECK(state.aliens.contains(9, 0)); // around the edge
  CHECK(state.aliens.contains(2, 4));

  SpaceInvaders::State caught{.cannon = 9, .direction = 1, .aliens = {}, .move_timer = 0};
  caught.aliens.insert(9, 8);
  CHECK(rules.step(caught, Action::none, none).terminated);
}

TEST_CASE("Of two columns of aliens equally near to the cannon, the left one shoots") {
  const SpaceInvaders rules(true);
  ScriptedChance none;
  SpaceInvaders::State state{.aliens = {}, .bomb_timer = 0};
  state.aliens.insert(3, 2);
  state.aliens.insert(7, 4);
  rules.step(state, Action::none, none);
  CHECK(state.bombs.count() == 1);
  CHECK(state.bombs.contains(3, 2));
}
