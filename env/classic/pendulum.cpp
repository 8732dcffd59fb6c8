#include "env/classic/pendulum.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::env::classic {

namespace {

constexpr double kPendulumSeconds = 0.05; // seconds per step
constexpr double kLargestTorque = 2;

/// The equivalent angle in [-pi, pi).
double from_upright(double angle) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const double turned = std::fmod(angle + std::numbers::pi, kTurn);
  return (turned < 0 ? turned + kTurn : turned) - std::numbers::pi;
}

} // namespace

Pendulum::Pendulum(const std::string& name, const gym::GymOptionValues& options)
    : spec_(classic_spec(name, options, {{"orientation", 2}, {"velocity", 1}},
                         {.minimum = {-kLargestTorque}, .maximum = {kLargestTorque}},
                         kPendulumSeconds)),
      gravity_(options.number("g")) {}

void Pendulum::begin(State& state, Random& random) const {
  state.angle = random.uniform(-std::numbers::pi, std::numbers::pi);
  state.velocity = random.uniform(-1, 1);
}

// A rod of length 1 and mass 1. As in Gymnasium, terms that depend on the action alone are float32.
GameStep Pendulum::step(State& state, std::span<const double> action, Random&) const {
  constexpr double kFastest = 8;

  const auto torque = static_cast<float>(action[0]);
  const double angle = from_upright(state.angle);
  const double cost = angle * angle + 0.1 * (state.velocity * state.velocity)
                      + static_cast<double>(0.001F * (torque * torque));
  const double acceleration =
      3 * gravity_ / 2 * std::sin(state.angle) + static_cast<double>(3.0F * torque);
  state.velocity =
      std::clamp(state.velocity + acceleration * kPendulumSeconds, -kFastest, kFastest);
  state.angle += state.velocity * kPendulumSeconds;
  return {.reward = -cost, .terminated = false};
}

void Pendulum::observe(const State& state, std::span<std::byte> observation) const {
  write_numbers(observation, {std::cos(state.angle), std::sin(state.angle), state.velocity});
}

ClassicTask pendulum_v1() {
  return {
      "Pendulum-v1",
      with_time_limit({{"g", gym::GymOptionKind::number, "10", "gravity, metres/second²"}}, "200"),
      &make_game<Pendulum>};
}

} // namespace troupe::env::classic
