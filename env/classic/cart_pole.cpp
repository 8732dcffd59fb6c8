#include "env/classic/cart_pole.hpp"

#include <cmath>
#include <numbers>

namespace troupe::env::classic {

namespace {

constexpr double kCartPoleSeconds = 0.02; // seconds per step

} // namespace

CartPole::CartPole(const std::string& name, const gym::GymOptionValues& options)
    : spec_(classic_spec(name, options,
                         {{"position", 1}, {"velocity", 1}, {"angle", 1}, {"angular_velocity", 1}},
                         one_of(2), kCartPoleSeconds)),
      sutton_barto_reward_(options.flag("sutton_barto_reward")) {}

void CartPole::begin(State& state, Random& random) const {
  for (double* number : {&state.position, &state.velocity, &state.angle, &state.angular_velocity})
    *number = random.uniform(-0.05, 0.05);
}

// Expressions are evaluated in Gymnasium's order, so that states agree bit for bit.
GameStep CartPole::step(State& state, std::span<const double> action, Random&) const {
  constexpr double kGravity = 9.8;
  constexpr double kPoleMass = 0.1;
  constexpr double kMass = kPoleMass + 1.0; // of pole and cart
  constexpr double kHalfLength = 0.5;       // of the pole
  constexpr double kPoleMassLength = kPoleMass * kHalfLength;
  constexpr double kForce = 10;
  constexpr double kFarthest = 2.4;
  constexpr double kLargestAngle = 12 * 2 * std::numbers::pi / 360;

  const double force = action[0] == 1 ? kForce : -kForce;
  const double cosine = std::cos(state.angle);
  const double sine = std::sin(state.angle);
  const double pushed =
      (force + kPoleMassLength * (state.angular_velocity * state.angular_velocity) * sine) / kMass;
  const double angular_acceleration =
      (kGravity * sine - cosine * pushed)
      / (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kMass));
  const double acceleration = pushed - kPoleMassLength * angular_acceleration * cosine / kMass;

  state.position += kCartPoleSeconds * state.velocity;
  state.velocity += kCartPoleSeconds * acceleration;
  state.angle += kCartPoleSeconds * state.angular_velocity;
  state.angular_velocity += kCartPoleSeconds * angular_acceleration;

  const bool fell = std::abs(state.position) > kFarthest || std::abs(state.angle) > kLargestAngle;
  if (sutton_barto_reward_)
    return {.reward = fell ? -1.0 : 0.0, .terminated = fell};
  return {.reward = 1, .terminated = fell};
}

void CartPole::observe(const State& state, std::span<std::byte> observation) const {
  write_numbers(observation, {state.position, state.velocity, state.angle, state.angular_velocity});
}

ClassicTask cart_pole_v1() {
  return {"CartPole-v1",
          with_time_limit({{"sutton_barto_reward", gym::GymOptionKind::flag, "false",
                            "reward of 0 per step and -1 at the end instead of 1 per step"}},
                          "500"),
          &make_game<CartPole>};
}

} // namespace troupe::env::classic
