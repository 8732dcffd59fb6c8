#include "env/minatar/space_invaders.hpp"

#include <algorithm>

namespace troupe::env::minatar {

namespace {

constexpr std::int32_t kCannonRow = kLastCell;
constexpr std::int32_t kCannonInterval = 5; // steps between shots
constexpr std::int32_t kBombInterval = 10;
constexpr std::int32_t kSlowestAliens = 12; // steps between moves
constexpr std::int32_t kFastestAliens = 6;

} // namespace

void SpaceInvaders::move_cannon(State& state, Action action) {
  if (action == Action::fire && state.shot_timer == 0) {
    state.shots.insert(state.cannon, kCannonRow);
    state.shot_timer = kCannonInterval;
  } else if (action == Action::left) {
    state.cannon = std::max(state.cannon - 1, 0);
  } else if (action == Action::right) {
    state.cannon = std::min(state.cannon + 1, kLastCell);
  }
}

/// Moves the aliens sideways, or down, after which they move the other way. Returns whether this
/// ends the game.
bool SpaceInvaders::move_aliens(State& state) {
  const bool at_wall = state.aliens.has_column(state.direction < 0 ? 0 : kLastCell);
  const bool landed = at_wall && state.aliens.has_row(kCannonRow);
  if (at_wall) {
    state.direction = -state.direction;
    state.aliens.move_down();
  } else if (state.direction < 0) {
    state.aliens.move_left();
  } else {
    state.aliens.move_right();
  }
  return landed || state.aliens.contains(state.cannon, kCannonRow);
}

/// The lowest alien of the column nearest to the cannon shoots; of two such columns the left one.
void SpaceInvaders::drop_bomb(State& state) {
  for (std::int32_t distance = 0; distance < kSide; ++distance)
    for (const std::int32_t x : {state.cannon - distance, state.cannon + distance})
      if (x >= 0 && x <= kLastCell && state.aliens.has_column(x))
        return state.bombs.insert(x, state.aliens.lowest_in(x));
}

GameStep SpaceInvaders::step(State& state, Action action, Chance&) const {
  GameStep made;
  move_cannon(state, action);
  state.shots.move_up();
  state.shots.clear_row(kCannonRow); // shots that left at the top
  state.bombs.move_down();
  state.bombs.clear_row(0);
  made.terminated = state.bombs.contains(state.cannon, kCannonRow)
                    || state.aliens.contains(state.cannon, kCannonRow);
  if (state.move_timer == 0) {
    state.move_timer = std::min(state.aliens.count(), state.move_interval);
    made.terminated |= move_aliens(state);
  }
  if (state.bomb_timer == 0) {
    state.bomb_timer = kBombInterval;
    drop_bomb(state);
  }
  const CellSet hit = common_cells(state.aliens, state.shots);
  made.reward = hit.count();
  state.aliens.remove(hit);
  state.shots.remove(hit);

  state.shot_timer = std::max(state.shot_timer - 1, 0);
  --state.move_timer;
  --state.bomb_timer;
  if (state.aliens.empty()) {
    if (ramping_)
      state.move_interval = std::max(state.move_interval - 1, kFastestAliens);
    state.aliens = kBlock;
  }
  return made;
}

void SpaceInvaders::observe(const State& state, Picture& picture) const {
  picture.show(0, state.cannon, kCannonRow);
  state.aliens.show(picture, 1);
  state.aliens.show(picture, state.direction < 0 ? 2 : 3);
  state.shots.show(picture, 4);
  state.bombs.show(picture, 5);
}

bool SpaceInvaders::is_valid(const State& state) const {
  return state.cannon >= 0 && state.cannon <= kLastCell
         && (state.direction == 1 || state.direction == -1) && state.shots.is_valid()
         && state.bombs.is_valid() && state.aliens.is_valid() && !state.aliens.empty()
         && state.shot_timer >= 0 && state.shot_timer < kCannonInterval && state.bomb_timer >= 0
         && state.bomb_timer <= kBombInterval && state.move_timer >= 0
         && state.move_timer <= kSlowestAliens && state.move_interval >= kFastestAliens
         && state.move_interval <= kSlowestAliens;
}

MinAtarGameRow space_invaders() {
  using enum Action;
  return {"SpaceInvaders", {none, left, right, fire}, &make_game<SpaceInvaders>};
}

} // namespace troupe::env::minatar
