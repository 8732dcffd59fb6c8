#include "env/classic/mountain_car_continuous.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::env::classic {

namespace {

/// Moves the car, computing in `Number`. Returns whether it reached the goal.
template <class Number>
bool drive(MountainCarContinuous::State& state, float force, double goal_velocity) {
  constexpr Number kFastest = static_cast<Number>(0.07);
  constexpr Number kLeft = static_cast<Number>(-1.2);
  constexpr Number kRight = static_cast<Number>(0.6);
  constexpr Number kGoal = static_cast<Number>(0.45);

  auto position = static_cast<Number>(state.position);
  auto velocity = static_cast<Number>(state.velocity);
  const auto slope = static_cast<float>(0.0025 * std::cos(static_cast<double>(3 * position)));
  velocity += force * 0.0015F - slope;
  velocity = std::clamp(velocity, -kFastest, kFastest);
  position = std::clamp(position + velocity, kLeft, kRight);
  if (position == kLeft && velocity < 0) // stopped by the wall
    velocity = 0;
  state = {.position = static_cast<float>(position),
           .velocity = static_cast<float>(velocity),
           .rounded = 1};
  return position >= kGoal && velocity >= static_cast<Number>(goal_velocity);
}

} // namespace

MountainCarContinuous::MountainCarContinuous(const std::string& name,
                                             const gym::GymOptionValues& options)
    : spec_(classic_spec(name, options, {{"position", 1}, {"velocity", 1}},
                         {.minimum = {-1}, .maximum = {1}}, 1)),
      goal_velocity_(options.number("goal_velocity")) {}

void MountainCarContinuous::begin(State& state, Random& random) const {
  state = {.position = random.uniform(-0.6, -0.4), .velocity = 0, .rounded = 0};
}

GameStep MountainCarContinuous::step(State& state, std::span<const double> action, Random&) const {
  const auto force = static_cast<float>(action[0]);
  const bool reached = state.rounded != 0 ? drive<float>(state, force, goal_velocity_)
                                          : drive<double>(state, force, goal_velocity_);
  const double squared = static_cast<double>(force) * static_cast<double>(force); // exact
  return {.reward = (reached ? 100.0 : 0.0) - squared * 0.1, .terminated = reached};
}

void MountainCarContinuous::observe(const State& state, std::span<std::byte> observation) const {
  write_numbers(observation, {state.position, state.velocity});
}

ClassicTask mountain_car_continuous_v0() {
  return {"MountainCarContinuous-v0",
          with_time_limit({{"goal_velocity", gym::GymOptionKind::number, "0",
                            "minimum velocity at which the goal counts as reached"}},
                          "999"),
          &make_game<MountainCarContinuous>};
}

} // namespace troupe::env::classic
