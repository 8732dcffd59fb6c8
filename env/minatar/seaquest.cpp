#include "env/minatar/seaquest.hpp"

#include <algorithm>

namespace troupe::env::minatar {

namespace {

constexpr std::int32_t kMostOxygen = 200;
constexpr std::int32_t kMostDivers = 6;
constexpr std::int32_t kGaugeRow = kLastCell;
constexpr std::int32_t kTopSeaRow = 1;
constexpr std::int32_t kBottomSeaRow = 8;
// In steps.
constexpr std::int32_t kTorpedoInterval = 5;
constexpr std::int32_t kEnemyShotInterval = 10;
constexpr std::int32_t kSlowestEnemies = 5;
constexpr std::int32_t kFastestEnemies = 2;
constexpr std::int32_t kRarestEnemies = 20;
constexpr std::int32_t kDiverInterval = 30;
constexpr std::int32_t kDiverMoveInterval = 5;

template <class Thing>
auto is_at(const Thing& place) {
  return [x = place.x, y = place.y](const auto& other) { return other.x == x && other.y == y; };
}

template <class Thing>
bool touches_player(const Seaquest::State& state, const Thing& thing) {
  return is_at(state)(thing);
}

/// The side and row at which an object enters the sea.
struct Entrance {
  std::int32_t x;
  std::int32_t y;
  std::int32_t step;
};

std::int32_t draw_sea_row(Chance& chance) {
  return kTopSeaRow + chance.one_below(kBottomSeaRow - kTopSeaRow + 1);
}

Entrance entrance(bool from_left, std::int32_t y) {
  return {.x = from_left ? 0 : kLastCell, .y = y, .step = from_left ? 1 : -1};
}

/// Moves a fish or a submarine by one step. Returns whether it is gone, because it left or was
/// shot.
template <class Enemy>
bool swim(Seaquest::State& state, Enemy& enemy, GameStep& made) {
  made.terminated |= touches_player(state, enemy);
  if (enemy.move_timer > 0) {
    --enemy.move_timer;
    return false;
  }
  enemy.move_timer = state.move_interval;
  enemy.x += enemy.step;
  if (!on_board(enemy.x, enemy.y))
    return true;
  if (touches_player(state, enemy)) {
    made.terminated = true;
    return false;
  }
  const bool shot = state.shots.erase_first(is_at(enemy));
  made.reward += shot ? 1 : 0;
  return shot;
}

} // namespace

/// No enemy enters a row in which another moves the opposite way.
void Seaquest::spawn_enemy(State& state, Chance& chance) {
  const bool from_left = chance.happens(1. / 2);
  const bool submarine = chance.happens(1. / 3);
  const auto [x, y, step] = entrance(from_left, draw_sea_row(chance));
  const auto comes_against = [row = y, way = step](const auto& enemy) {
    return enemy.y == row && enemy.step != way;
  };
  if (std::ranges::any_of(state.submarines.elements(), comes_against)
      || std::ranges::any_of(state.fish.elements(), comes_against))
    return;
  if (submarine)
    state.submarines.append({.x = x,
                             .y = y,
                             .step = step,
                             .move_timer = state.move_interval,
                             .shot_timer = kEnemyShotInterval});
  else
    state.fish.append({.x = x, .y = y, .step = step, .move_timer = state.move_interval});
}

void Seaquest::spawn_diver(State& state, Chance& chance) {
  const bool from_left = chance.happens(1. / 2);
  const auto [x, y, step] = entrance(from_left, draw_sea_row(chance));
  state.divers.append({.x = x, .y = y, .step = step, .move_timer = kDiverMoveInterval});
}

void Seaquest::move_player(State& state, Action action) {
  switch (action) {
  case Action::fire:
    if (state.shot_timer > 0)
      break;
    state.shots.append({.x = state.x, .y = state.y, .step = state.facing});
    state.shot_timer = kTorpedoInterval;
    break;
  case Action::left:
    state.x = std::max(state.x - 1, 0);
    state.facing = -1;
    break;
  case Action::right:
    state.x = std::min(state.x + 1, kLastCell);
    state.facing = 1;
    break;
  case Action::up:
    state.y = std::max(state.y - 1, 0);
    break;
  case Action::down:
    state.y = std::min(state.y + 1, kBottomSeaRow);
    break;
  default:
    break;
  }
}

// Objects are processed from the last to the first, which decides what is hit where several meet.

void Seaquest::move_shots(State& state, GameStep& made) {
  for (std::int32_t i = state.shots.size(); i-- > 0;) {
    Shot& shot = state.shots[i];
    shot.x += shot.step;
    const bool hit =
        state.fish.erase_first(is_at(shot)) || state.submarines.erase_first(is_at(shot));
    made.reward += hit ? 1 : 0;
    if (hit || !on_board(shot.x, shot.y))
      state.shots.erase(i);
  }
}

void Seaquest::move_divers(State& state) {
  for (std::int32_t i = state.divers.size(); i-- > 0;) {
    Swimmer& diver = state.divers[i];
    const auto comes_aboard = [&] {
      return state.aboard < kMostDivers && touches_player(state, diver);
    };
    bool aboard = comes_aboard();
    if (!aboard && diver.move_timer-- == 0) {
      diver.move_timer = kDiverMoveInterval;
      diver.x += diver.step;
      aboard = comes_aboard();
    }
    state.aboard += aboard ? 1 : 0;
    if (aboard || !on_board(diver.x, diver.y))
      state.divers.erase(i);
  }
}

void Seaquest::move_submarines(State& state, GameStep& made) {
  for (std::int32_t i = state.submarines.size(); i-- > 0;) {
    Submarine& submarine = state.submarines[i];
    const bool gone = swim(state, submarine, made);
    if (submarine.shot_timer-- == 0) {
      submarine.shot_timer = kEnemyShotInterval;
      state.enemy_shots.append({.x = submarine.x, .y = submarine.y, .step = submarine.step});
    }
    if (gone)
      state.submarines.erase(i);
  }
}

void Seaquest::move_enemy_shots(State& state, GameStep& made) {
  for (std::int32_t i = state.enemy_shots.size(); i-- > 0;) {
    Shot& shot = state.enemy_shots[i];
    made.terminated |= touches_player(state, shot);
    shot.x += shot.step;
    made.terminated |= touches_player(state, shot);
    if (!on_board(shot.x, shot.y))
      state.enemy_shots.erase(i);
  }
}

void Seaquest::move_fish(State& state, GameStep& made) {
  for (std::int32_t i = state.fish.size(); i-- > 0;)
    if (swim(state, state.fish[i], made))
      state.fish.erase(i);
}

/// Returns the reward.
double Seaquest::surface(State& state) const {
  const bool full = state.aboard == kMostDivers;
  const double reward = full ? state.oxygen * 10 / kMostOxygen : 0;
  state.aboard = full ? -1 : state.aboard - 1;
  state.oxygen = kMostOxygen;
  if (ramping_ && (state.enemy_interval > 1 || state.move_interval > kFastestEnemies)) {
    if (state.ramps % 2 == 1)
      state.move_interval = std::max(state.move_interval - 1, kFastestEnemies);
    state.enemy_interval = std::max(state.enemy_interval - 1, 1);
    ++state.ramps;
  }
  return reward;
}

void Seaquest::breathe(State& state, GameStep& made) const {
  if (state.oxygen <= 0)
    made.terminated = true;
  if (state.y > 0) {
    --state.oxygen;
    state.surfaced = 0;
  } else if (state.surfaced == 0) {
    if (state.aboard == 0) {
      made.terminated = true;
    } else {
      state.surfaced = 1;
      made.reward += surface(state);
    }
  }
}

GameStep Seaquest::step(State& state, Action action, Chance& chance) const {
  GameStep made;
  if (state.enemy_timer == 0) {
    spawn_enemy(state, chance);
    state.enemy_timer = state.enemy_interval;
  }
  if (state.diver_timer == 0) {
    spawn_diver(state, chance);
    state.diver_timer = kDiverInterval;
  }
  move_player(state, action);
  move_shots(state, made);
  move_divers(state);
  move_submarines(state, made);
  move_enemy_shots(state, made);
  move_fish(state, made);
  --state.enemy_timer;
  --state.diver_timer;
  state.shot_timer = std::max(state.shot_timer - 1, 0);
  breathe(state, made);
  return made;
}

void Seaquest::observe(const State& state, Picture& picture) const {
  picture.show(0, state.x, state.y);
  picture.show(1, state.x - state.facing, state.y);
  const auto show_all = [&](const auto& list, std::int32_t channel, bool with_trail) {
    for (const auto& thing : list.elements()) {
      picture.show(channel, thing.x, thing.y);
      if (with_trail)
        picture.show(3, thing.x - thing.step, thing.y);
    }
  };
  show_all(state.shots, 2, false);
  show_all(state.enemy_shots, 4, false);
  show_all(state.fish, 5, true);
  show_all(state.submarines, 6, true);
  show_all(state.divers, 9, true);
  for (std::int32_t x = 0; x < state.oxygen * 10 / kMostOxygen; ++x)
    picture.show(7, x, kGaugeRow);
  for (std::int32_t i = 1; i <= state.aboard; ++i)
    picture.show(8, kLastCell - i, kGaugeRow);
}

bool Seaquest::is_valid(const State& state) const {
  const auto within = [](std::int32_t value, std::int32_t least, std::int32_t most) {
    return value >= least && value <= most;
  };
  const auto in_sea = [&](const auto& thing) {
    return within(thing.x, 0, kLastCell) && within(thing.y, kTopSeaRow, kBottomSeaRow)
           && (thing.step == 1 || thing.step == -1);
  };
  const auto is_torpedo = [&](const Shot& shot) {
    return on_board(shot.x, shot.y) && (shot.step == 1 || shot.step == -1);
  };
  const auto is_swimmer = [&](const auto& swimmer) {
    return in_sea(swimmer) && within(swimmer.move_timer, 0, kSlowestEnemies);
  };
  const auto is_submarine = [&](const Submarine& submarine) {
    return is_swimmer(submarine) && within(submarine.shot_timer, 0, kEnemyShotInterval);
  };
  constexpr std::int32_t kFewestDivers = -1'000'000'000; // each surfacing can leave one diver fewer
  return within(state.x, 0, kLastCell) && within(state.y, 0, kBottomSeaRow)
         && (state.facing == 1 || state.facing == -1) && within(state.oxygen, -1, kMostOxygen)
         && within(state.aboard, kFewestDivers, kMostDivers) && within(state.surfaced, 0, 1)
         && within(state.shot_timer, 0, kTorpedoInterval)
         && within(state.enemy_timer, 0, kRarestEnemies)
         && within(state.enemy_interval, 1, kRarestEnemies)
         && within(state.diver_timer, 0, kDiverInterval)
         && within(state.move_interval, kFastestEnemies, kSlowestEnemies)
         && within(state.ramps, 0, kRarestEnemies) && state.shots.is_valid(is_torpedo)
         && state.enemy_shots.is_valid(in_sea) && state.fish.is_valid(is_swimmer)
         && state.submarines.is_valid(is_submarine) && state.divers.is_valid(is_swimmer);
}

MinAtarGameRow seaquest() {
  using enum Action;
  return {"Seaquest", {none, left, up, right, down, fire}, &make_game<Seaquest>};
}

} // namespace troupe::env::minatar
