#include "env/minatar/freeway.hpp"

#include <algorithm>

namespace troupe::env::minatar {

namespace {

constexpr std::int32_t kChickenColumn = 4;
constexpr std::int32_t kChickenPeriod = 3;
constexpr std::int32_t kSlowestCar = 5;
constexpr std::int32_t kFreewaySteps = 2'500;

/// Wraps a column beyond the edge to the opposite side.
std::int32_t around(std::int32_t x) {
  return (x + kSide) % kSide;
}

} // namespace

/// Draws new speeds and directions; the cars stay where they are.
void Freeway::draw_cars(State& state, Chance& chance) {
  for (Car& car : state.cars) {
    car.period = 1 + chance.one_below(kSlowestCar);
    car.timer = car.period;
  }
  for (Car& car : state.cars)
    car.step = chance.uniform() < .5 ? -1 : 1;
}

void Freeway::begin(State& state, Chance& chance) const {
  draw_cars(state, chance);
}

void Freeway::move_chicken(State& state, Action action) {
  if (state.move_timer > 0 || (action != Action::up && action != Action::down))
    return;
  state.y = std::clamp(state.y + (action == Action::up ? -1 : 1), 0, kLastCell);
  state.move_timer = kChickenPeriod;
}

void Freeway::move_cars(State& state) {
  std::int32_t row = 0;
  for (Car& car : state.cars) {
    ++row;
    const auto hit = [&] {
      if (car.x == kChickenColumn && row == state.y)
        state.y = kLastCell;
    };
    hit(); // the chicken may have walked into the car
    if (car.timer > 0) {
      --car.timer;
      continue;
    }
    car.timer = car.period;
    car.x = around(car.x + car.step);
    hit();
  }
}

GameStep Freeway::step(State& state, Action action, Chance& chance) const {
  GameStep made;
  move_chicken(state, action);
  if (state.y == 0) {
    made.reward = 1;
    draw_cars(state, chance);
    state.y = kLastCell;
  }
  move_cars(state);
  state.move_timer = std::max(state.move_timer - 1, 0);
  made.terminated = --state.steps_left < 0;
  return made;
}

void Freeway::observe(const State& state, Picture& picture) const {
  picture.show(0, kChickenColumn, state.y);
  std::int32_t row = 0;
  for (const Car& car : state.cars) {
    picture.show(1, car.x, ++row);
    picture.show(1 + car.period, around(car.x - car.step), row);
  }
}

bool Freeway::is_valid(const State& state) const {
  const auto is_good = [](const Car& car) {
    return car.x >= 0 && car.x <= kLastCell && (car.step == 1 || car.step == -1) && car.period >= 1
           && car.period <= kSlowestCar && car.timer >= 0 && car.timer <= car.period;
  };
  return state.y >= 1 && state.y <= kLastCell && state.move_timer >= 0
         && state.move_timer <= kChickenPeriod && state.steps_left >= -1
         && state.steps_left <= kFreewaySteps && std::ranges::all_of(state.cars, is_good);
}

MinAtarGameRow freeway() {
  using enum Action;
  return {"Freeway", {none, up, down}, &make_game<Freeway>};
}

} // namespace troupe::env::minatar
