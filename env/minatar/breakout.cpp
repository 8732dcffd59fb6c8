#include "env/minatar/breakout.hpp"

#include <algorithm>
#include <cstdlib>

namespace troupe::env::minatar {

void Breakout::begin(State& state, Chance& chance) const {
  if (chance.one_below(2) == 1) {
    state.x = kLastCell;
    state.step_x = -1;
  }
  state.last_x = state.x;
}

GameStep Breakout::step(State& state, Action action, Chance&) const {
  if (action == Action::left)
    state.paddle = std::max(state.paddle - 1, 0);
  else if (action == Action::right)
    state.paddle = std::min(state.paddle + 1, kLastCell);

  GameStep made;
  std::int32_t y = state.y + state.step_y; // the ball's next position
  std::int32_t x = state.x + state.step_x;
  const auto bounce = [&] { // reverses the vertical direction; the ball stays in its row
    state.step_y = -state.step_y;
    y = state.y;
  };
  if (x < 0 || x > kLastCell) {
    x = state.x; // the ball stays in the column beside the wall
    state.step_x = -state.step_x;
  }
  const bool in_brick = state.bricks.contains(x, y);
  if (y < 0) {
    bounce();
  } else if (in_brick && state.in_brick == 0) {
    state.bricks.erase(x, y);
    made.reward = 1;
    bounce();
  } else if (!in_brick && y == kLastCell) {
    if (state.bricks.empty())
      state.bricks = kWall;
    if (state.paddle == state.x) {
      bounce();
    } else if (state.paddle == x) { // the paddle's edge meets the ball
      bounce();
      state.step_x = -state.step_x;
    } else {
      made.terminated = true;
    }
  }
  state.in_brick = in_brick ? 1 : 0;
  state.last_x = state.x;
  state.last_y = state.y;
  state.x = x;
  state.y = y;
  return made;
}

void Breakout::observe(const State& state, Picture& picture) const {
  picture.show(0, state.paddle, kLastCell);
  picture.show(1, state.x, state.y);
  picture.show(2, state.last_x, state.last_y);
  state.bricks.show(picture, 3);
}

bool Breakout::is_valid(const State& state) const {
  CellSet elsewhere = state.bricks;
  elsewhere.remove(kWall);
  return state.paddle >= 0 && state.paddle <= kLastCell && on_board(state.x, state.y)
         && on_board(state.last_x, state.last_y) && std::abs(state.step_x) == 1
         && std::abs(state.step_y) == 1 && (state.in_brick == 0 || state.in_brick == 1)
         && state.bricks.is_valid() && elsewhere.empty();
}

MinAtarGameRow breakout() {
  using enum Action;
  return {"Breakout", {none, left, right}, &make_game<Breakout>};
}

} // namespace troupe::env::minatar
