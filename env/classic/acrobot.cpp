#include "env/classic/acrobot.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::env::classic {

namespace {

constexpr double kAcrobotSeconds = 0.2; // seconds per step

/// The equivalent angle in [-pi, pi].
double wrapped(double angle) {
  while (angle > std::numbers::pi)
    angle -= 2 * std::numbers::pi;
  while (angle < -std::numbers::pi)
    angle += 2 * std::numbers::pi;
  return angle;
}

} // namespace

Acrobot::Acrobot(const std::string& name, const gym::GymOptionValues& options)
    : spec_(classic_spec(name, options, {{"orientations", 4}, {"velocity", 2}}, one_of(3),
                         kAcrobotSeconds)),
      nips_(options.text("book_or_nips") == "nips") {}

void Acrobot::begin(State& state, Random& random) const {
  for (double& number : state.numbers) // Gymnasium rounds the first state to float32
    number = static_cast<double>(static_cast<float>(random.uniform(-0.1, 0.1)));
}

/// Links of length 1, mass 1 and moment of inertia 1, with the mass in the middle. Expressions are
/// evaluated in Gymnasium's order.
Acrobot::Numbers Acrobot::derivative(const Numbers& numbers, double torque) const {
  constexpr double kGravity = 9.8;
  constexpr double kLength = 1;
  constexpr double kCentre = 0.5; // centre of mass, from the joint above
  constexpr double kMass = 1;
  constexpr double kInertia = 1;
  constexpr double kCentreSquared = kCentre * kCentre;
  constexpr double kQuarterTurn = std::numbers::pi / 2;

  const auto [angle1, angle2, velocity1, velocity2] = numbers;
  const double sine = std::sin(angle2);
  const double cosine = std::cos(angle2);
  const double d1 = kMass * kCentreSquared
                    + kMass * (kLength * kLength + kCentreSquared + 2 * kLength * kCentre * cosine)
                    + kInertia + kInertia;
  const double d2 = kMass * (kCentreSquared + kLength * kCentre * cosine) + kInertia;
  const double phi2 = kMass * kCentre * kGravity * std::cos(angle1 + angle2 - kQuarterTurn);
  const double phi1 =
      -kMass * kLength * kCentre * (velocity2 * velocity2) * sine
      - 2 * kMass * kLength * kCentre * velocity2 * velocity1 * sine
      + (kMass * kCentre + kMass * kLength) * kGravity * std::cos(angle1 - kQuarterTurn) + phi2;
  const double inertia = kMass * kCentreSquared + kInertia - d2 * d2 / d1;
  const double pulled = torque + d2 / d1 * phi1;
  const double swung =
      nips_ ? pulled : pulled - kMass * kLength * kCentre * (velocity1 * velocity1) * sine;
  const double acceleration2 = (swung - phi2) / inertia;
  const double acceleration1 = -(d2 * acceleration2 + phi1) / d1;
  return {velocity1, velocity2, acceleration1, acceleration2};
}

GameStep Acrobot::step(State& state, std::span<const double> action, Random&) const {
  constexpr double kFastest1 = 4 * std::numbers::pi;
  constexpr double kFastest2 = 9 * std::numbers::pi;

  const double torque = action[0] - 1;
  const Numbers start = state.numbers;
  const auto after = [&](double seconds, const Numbers& slope) {
    Numbers moved = start;
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] += seconds * slope[i];
    return derivative(moved, torque);
  };
  const Numbers k1 = derivative(start, torque);
  const Numbers k2 = after(kAcrobotSeconds / 2, k1);
  const Numbers k3 = after(kAcrobotSeconds / 2, k2);
  const Numbers k4 = after(kAcrobotSeconds, k3);
  Numbers& next = state.numbers;
  for (std::size_t i = 0; i < next.size(); ++i)
    next[i] = start[i] + kAcrobotSeconds / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  next[0] = wrapped(next[0]);
  next[1] = wrapped(next[1]);
  next[2] = std::clamp(next[2], -kFastest1, kFastest1);
  next[3] = std::clamp(next[3], -kFastest2, kFastest2);
  const bool reached = -std::cos(next[0]) - std::cos(next[1] + next[0]) > 1;
  return {.reward = reached ? 0.0 : -1.0, .terminated = reached};
}

void Acrobot::observe(const State& state, std::span<std::byte> observation) const {
  const auto [angle1, angle2, velocity1, velocity2] = state.numbers;
  write_numbers(observation, {std::cos(angle1), std::sin(angle1), std::cos(angle2),
                              std::sin(angle2), velocity1, velocity2});
}

ClassicTask acrobot_v1() {
  return {"Acrobot-v1",
          with_time_limit({{"book_or_nips",
                            gym::GymOptionKind::choice,
                            "book",
                            "dynamics of Sutton and Barto's book, or of the NIPS paper",
                            {"book", "nips"}}},
                          "500"),
          &make_game<Acrobot>};
}

} // namespace troupe::env::classic
