#include "env/classic/mountain_car.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::env::classic {

MountainCar::MountainCar(const std::string& name, const gym::GymOptionValues& options)
    : spec_(classic_spec(name, options, {{"position", 1}, {"velocity", 1}}, one_of(3), 1)),
      goal_velocity_(options.number("goal_velocity")) {}

void MountainCar::begin(State& state, Random& random) const {
  state = {.position = random.uniform(-0.6, -0.4), .velocity = 0};
}

GameStep MountainCar::step(State& state, std::span<const double> action, Random&) const {
  constexpr double kForce = 0.001;
  constexpr double kGravity = 0.0025;
  constexpr double kFastest = 0.07;
  constexpr double kLeft = -1.2;
  constexpr double kRight = 0.6;
  constexpr double kGoal = 0.5;

  state.velocity += (action[0] - 1) * kForce + std::cos(3 * state.position) * -kGravity;
  state.velocity = std::clamp(state.velocity, -kFastest, kFastest);
  state.position = std::clamp(state.position + state.velocity, kLeft, kRight);
  if (state.position == kLeft && state.velocity < 0) // stopped by the wall
    state.velocity = 0;
  return {.reward = -1, .terminated = state.position >= kGoal && state.velocity >= goal_velocity_};
}

void MountainCar::observe(const State& state, std::span<std::byte> observation) const {
  write_numbers(observation, {state.position, state.velocity});
}

ClassicTask mountain_car_v0() {
  return {"MountainCar-v0",
          with_time_limit({{"goal_velocity", gym::GymOptionKind::number, "0",
                            "minimum velocity at which the goal counts as reached"}},
                          "200"),
          &make_game<MountainCar>};
}

} // namespace troupe::env::classic
