#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "env/minatar/asterix.hpp"
#include "env/minatar/breakout.hpp"
#include "env/minatar/freeway.hpp"
#include "env/minatar/seaquest.hpp"
#include "env/minatar/space_invaders.hpp"
#include "env/random.hpp"
#include "tests/env/minatar/played_game.hpp"

using namespace troupe::env;
using namespace troupe::env::minatar;

namespace {

/// Makes `steps` steps, with a new episode whenever one ends.
void play(PlayedGame& game, Random& random, int steps) {
  for (int i = 0; i < steps; ++i)
    if (game.step(game.some_action(random)).step_type == StepType::last)
      game.reset(random.bits());
}

/// Flips each bit of a saved state in turn; the result is refused or can be played. Returns how
/// many were refused.
int refused_flips(const std::string& name) {
  PlayedGame game(name);
  Random random(5);
  game.reset(1);
  play(game, random, 60);
  std::vector<std::byte> state = game.saved();
  int refused = 0;
  PlayedGame damaged(name);
  for (std::size_t bit = 0; bit < state.size() * 8; ++bit) {
    state[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      damaged.environment->load_state(state);
      for (int i = 0; i < 20; ++i)
        if (damaged.step(damaged.some_action(random)).step_type == StepType::last)
          break;
    } catch (const std::invalid_argument&) {
      ++refused;
    }
    state[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  return refused;
}

template <class Rules>
void refuses(const std::string& name,
             const std::vector<std::pair<const char*, void (*)(typename Rules::State&)>>& changes) {
  PlayedGame game(name);
  game.reset(1);
  using State = typename MinAtarGame<Rules>::State;
  for (const auto& [what, change] : changes) {
    CAPTURE(name);
    CAPTURE(what);
    std::vector<std::byte> saved = game.saved();
    State state;
    std::memcpy(&state, saved.data(), sizeof state); // begins with the game's state
    change(state.board);
    std::memcpy(saved.data(), &state, sizeof state);
    CHECK_THROWS_WITH_AS(game.environment->load_state(saved),
                         doctest::Contains("not a state of this game"), std::invalid_argument);
  }
}

} // namespace

TEST_CASE("A loaded state of a MinAtar game continues bit for bit") {
  for (const std::string& name : minatar_names()) {
    CAPTURE(name);
    PlayedGame saved(name);
    Random random(3);
    saved.reset(7);
    for (int turn = 0; turn < 20; ++turn) {
      play(saved, random, 37);
      const std::vector<std::byte> state = saved.saved();
      PlayedGame loaded(name);
      CHECK(loaded.environment->load_state(state).empty());
      CHECK(loaded.saved() == state);
      for (int i = 0; i < 40; ++i) {
        const double action = saved.some_action(random);
        const TimeStep a = saved.step(action);
        const TimeStep b = loaded.step(action);
        REQUIRE(a.reward == b.reward);
        REQUIRE(a.step_type == b.step_type);
        REQUIRE(a.discount == b.discount);
        REQUIRE(saved.observation == loaded.observation);
        REQUIRE(saved.saved() == loaded.saved());
        if (a.step_type == StepType::last) {
          saved.reset(random.bits());
          break;
        }
      }
    }
  }
}

TEST_CASE("A MinAtar episode depends only on its seed") {
  for (const std::string& name : minatar_names()) {
    CAPTURE(name);
    const auto boards = [&](PlayedGame& game, std::uint64_t seed) {
      std::vector<std::byte> all;
      Random random(2);
      TimeStep step = game.reset(seed);
      for (int i = 0; i < 100 && step.step_type != StepType::last; ++i) {
        all.insert(all.end(), game.observation.begin(), game.observation.end());
        step = game.step(game.some_action(random));
      }
      return all;
    };
    PlayedGame first(name);
    PlayedGame second(name);
    std::vector<std::vector<std::byte>> episodes;
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      episodes.push_back(boards(first, seed));
    for (std::uint64_t seed = 10; seed-- > 0;)
      CHECK(boards(second, seed) == episodes[seed]);
    CHECK(std::ranges::count(episodes, episodes[0]) < 10);
  }
}

TEST_CASE("An invalid state of a MinAtar game is not loaded") {
  refuses<Asterix>("MinAtar/Asterix-v0",
                   {{"beside the board", [](auto& s) { s.x = 10; }},
                    {"in the top row", [](auto& s) { s.y = 0; }},
                    {"an unknown visitor", [](auto& s) { s.visitors[3] = {.kind = 3, .step = 1}; }},
                    {"a visitor who stands", [](auto& s) { s.visitors[3] = {.kind = 1}; }},
                    {"a timer below 0", [](auto& s) { s.spawn_timer = -1; }},
                    {"an interval of 0", [](auto& s) { s.move_interval = 0; }}});
  refuses<Breakout>("MinAtar/Breakout-v0",
                    {{"the paddle beside the board", [](auto& s) { s.paddle = -1; }},
                     {"the ball below the board", [](auto& s) { s.y = 10; }},
                     {"a ball that stands", [](auto& s) { s.step_x = 0; }},
                     {"a brick at the top", [](auto& s) { s.bricks.insert(0, 0); }}});
  refuses<Freeway>("MinAtar/Freeway-v0",
                   {{"a car beside the board", [](auto& s) { s.cars[7].x = 10; }},
                    {"a car without a period", [](auto& s) { s.cars[0].period = 0; }},
                    {"too many steps", [](auto& s) { s.steps_left = 2'501; }}});
  refuses<Seaquest>("MinAtar/Seaquest-v0",
                    {{"seven divers", [](auto& s) { s.aboard = 7; }},
                     {"too much oxygen", [](auto& s) { s.oxygen = 201; }},
                     {"a fish in the air", [](auto& s) { s.fish.append({.x = 3, .step = 1}); }},
                     {"a diver who stands", [](auto& s) { s.divers.append({.x = 3, .y = 3}); }}});
  refuses<SpaceInvaders>("MinAtar/SpaceInvaders-v0",
                         {{"no aliens", [](auto& s) { s.aliens = {}; }},
                          {"aliens that stand", [](auto& s) { s.direction = 0; }},
                          {"too fast", [](auto& s) { s.move_interval = 5; }}});
}

TEST_CASE("A MinAtar state with any bit flipped is refused or can be played") {
  for (const std::string& name : minatar_names())
    if (name.ends_with("v0")) {
      CAPTURE(name);
      CHECK(refused_flips(name) > 100);
    }
}

TEST_CASE("A bounded list keeps its order and never exceeds its capacity") {
  BoundedList<std::int32_t, 3> list;
  for (const int element : {4, 5, 4, 6})
    list.append(element);
  CHECK(list.size() == 3);
  CHECK(list.erase_first([](int element) { return element == 4; }));
  CHECK(std::ranges::equal(list.elements(), std::vector{5, 4}));
  CHECK_FALSE(list.erase_first([](int element) { return element == 6; }));
  list.erase(1);
  list.erase(0);
  CHECK(list.size() == 0);
  const BoundedList<std::int32_t, 3> never_used;
  CHECK(std::memcmp(&list, &never_used, sizeof list) == 0); // equal lists have equal bytes
}

TEST_CASE("Sets of cells wrap around the board's edges and have no cells outside it") {
  CellSet set;
  set.insert(0, 0);
  set.insert(10, 0);
  set.insert(0, -1);
  CHECK(set.count() == 1);
  set.move_left();
  CHECK(set.contains(9, 0));
  set.move_up();
  CHECK(set.contains(9, 9));
  CHECK(set.lowest_in(9) == 9);
  set.move_right();
  set.move_down();
  CHECK(set.contains(0, 0));
  CHECK(set.has_row(0));
  CHECK_FALSE(set.has_column(1));
  CHECK(set.is_valid());
  set.erase(0, 0);
  CHECK(set.empty());
  CHECK(common_cells(CellSet::block(2, 4, 1, 3), CellSet::block(4, 9, 3, 9)).count() == 1);
}
