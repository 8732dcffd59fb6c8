#include "env/minatar/asterix.hpp"

#include <algorithm>

namespace troupe::env::minatar {

namespace {

constexpr std::int32_t kVisitorNone = 0;
constexpr std::int32_t kVisitorEnemy = 1;
constexpr std::int32_t kVisitorGold = 2;
constexpr std::int32_t kTopVisitorRow = 1;
constexpr std::int32_t kBottomVisitorRow = 8;
constexpr std::int32_t kVisitorRampInterval = 100;

Asterix::Visitor& visitor_in(Asterix::State& state, std::int32_t row) {
  return state.visitors[static_cast<std::size_t>(row - kTopVisitorRow)];
}

} // namespace

/// Spawns a visitor in a free row, each with the same probability. Side and kind are drawn even if
/// all rows are taken.
void Asterix::spawn(State& state, Chance& chance) {
  const bool from_left = chance.happens(1. / 2);
  const bool gold = chance.happens(1. / 3);
  const auto is_free = [](const Visitor& visitor) { return visitor.kind == kVisitorNone; };
  const auto free = static_cast<std::int32_t>(std::ranges::count_if(state.visitors, is_free));
  if (free == 0)
    return;
  std::int32_t before = chance.one_below(free); // free rows above the chosen one
  for (Visitor& visitor : state.visitors)
    if (is_free(visitor) && before-- == 0) {
      visitor = {.kind = gold ? kVisitorGold : kVisitorEnemy,
                 .x = from_left ? 0 : kLastCell,
                 .step = from_left ? 1 : -1};
      return;
    }
}

void Asterix::move_player(State& state, Action action) {
  switch (action) {
  case Action::left:
    state.x = std::max(state.x - 1, 0);
    break;
  case Action::right:
    state.x = std::min(state.x + 1, kLastCell);
    break;
  case Action::up:
    state.y = std::max(state.y - 1, kTopVisitorRow);
    break;
  case Action::down:
    state.y = std::min(state.y + 1, kBottomVisitorRow);
    break;
  default:
    break;
  }
}

void Asterix::meet(State& state, std::int32_t row, GameStep& made) {
  Visitor& visitor = visitor_in(state, row);
  if (visitor.kind == kVisitorNone || visitor.x != state.x || row != state.y)
    return;
  if (visitor.kind == kVisitorGold) {
    made.reward += 1;
    visitor = {};
  } else {
    made.terminated = true;
  }
}

void Asterix::move_visitors(State& state, GameStep& made) {
  for (std::int32_t row = kTopVisitorRow; row <= kBottomVisitorRow; ++row) {
    Visitor& visitor = visitor_in(state, row);
    visitor.x += visitor.step;
    if (!on_board(visitor.x, row))
      visitor = {};
    meet(state, row, made);
  }
}

/// Objects appear more often each time, and move faster every other time.
void Asterix::ramp(State& state) {
  if (state.spawn_interval == 1 && state.move_interval == 1)
    return;
  if (state.ramp_timer >= 0) {
    --state.ramp_timer;
    return;
  }
  if (state.ramps % 2 == 1)
    state.move_interval = std::max(state.move_interval - 1, 1);
  state.spawn_interval = std::max(state.spawn_interval - 1, 1);
  ++state.ramps;
  state.ramp_timer = kVisitorRampInterval;
}

GameStep Asterix::step(State& state, Action action, Chance& chance) const {
  GameStep made;
  if (state.spawn_timer == 0) {
    spawn(state, chance);
    state.spawn_timer = state.spawn_interval;
  }
  move_player(state, action);
  for (std::int32_t row = kTopVisitorRow; row <= kBottomVisitorRow; ++row)
    meet(state, row, made);
  if (state.move_timer == 0) {
    state.move_timer = state.move_interval;
    move_visitors(state, made);
  }
  --state.spawn_timer;
  --state.move_timer;
  if (ramping_)
    ramp(state);
  return made;
}

void Asterix::observe(const State& state, Picture& picture) const {
  picture.show(0, state.x, state.y);
  for (std::int32_t row = kTopVisitorRow; row <= kBottomVisitorRow; ++row) {
    const Visitor& visitor = state.visitors[static_cast<std::size_t>(row - kTopVisitorRow)];
    if (visitor.kind == kVisitorNone)
      continue;
    picture.show(visitor.kind == kVisitorGold ? 3 : 1, visitor.x, row);
    picture.show(2, visitor.x - visitor.step, row);
  }
}

bool Asterix::is_valid(const State& state) const {
  const auto is_good = [](const Visitor& visitor) {
    if (visitor.kind == kVisitorNone)
      return visitor.x == 0 && visitor.step == 0;
    return (visitor.kind == kVisitorEnemy || visitor.kind == kVisitorGold)
           && (visitor.step == 1 || visitor.step == -1) && visitor.x >= 0 && visitor.x <= kLastCell;
  };
  return on_board(state.x, state.y) && state.y >= kTopVisitorRow && state.y <= kBottomVisitorRow
         && std::ranges::all_of(state.visitors, is_good) && state.spawn_interval >= 1
         && state.spawn_interval <= 10 && state.spawn_timer >= 0 && state.spawn_timer <= 10
         && state.move_interval >= 1 && state.move_interval <= 5 && state.move_timer >= 0
         && state.move_timer <= 5 && state.ramp_timer >= -1
         && state.ramp_timer <= kVisitorRampInterval && state.ramps >= 0 && state.ramps <= 20;
}

MinAtarGameRow asterix() {
  using enum Action;
  return {"Asterix", {none, left, up, right, down}, &make_game<Asterix>};
}

} // namespace troupe::env::minatar
