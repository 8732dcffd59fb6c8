#include "env/gym/biped.hpp"

#include <algorithm>

namespace troupe::env::gym {

namespace {

constexpr double kFastestShown = 10; // limit of observed velocities

} // namespace

Biped::Biped(const GymOptionValues& options, const Physics& physics,
             std::optional<GymRange> healthy_state)
    : forward_weight_(options.number("forward_reward_weight")),
      control_weight_(options.number("ctrl_cost_weight")),
      healthy_reward_(options.number("healthy_reward")),
      terminates_(options.flag("terminate_when_unhealthy")),
      healthy_state_(healthy_state),
      healthy_z_(options.range("healthy_z_range")),
      healthy_angle_(options.range("healthy_angle_range")),
      noise_(options.number("reset_noise_scale")),
      skipped_(options.flag("exclude_current_positions_from_observation") ? 1 : 0) {
  require_sizes(physics, 3, 0);
}

std::vector<ArraySpec> Biped::observations(const Physics& physics) const {
  return {gym_array("qpos", positions(physics).size() - skipped_),
          gym_array("qvel", velocities(physics).size())};
}

void Biped::initialize_episode(Physics& physics, Random& random) const {
  add_uniform_noise(positions(physics), noise_, random);
  add_uniform_noise(velocities(physics), noise_, random);
}

bool Biped::healthy(const Physics& physics) const {
  const auto q = positions(physics);
  const auto v = velocities(physics);
  if (healthy_state_) {
    const auto sound = [this](double value) { return inside(value, *healthy_state_); };
    if (!std::all_of(q.begin() + 2, q.end(), sound) || !std::all_of(v.begin(), v.end(), sound))
      return false;
  }
  return inside(q[1], healthy_z_) && inside(q[2], healthy_angle_);
}

double Biped::reward(const Physics&, const GymStep& step, std::span<RewardPart> parts) const {
  const double forward = forward_weight_ * step.velocity;
  const double survive = step.healthy ? healthy_reward_ : 0;
  const double control = control_weight_ * sum_of_squares(step.action);
  parts[0].value = forward;
  parts[1].value = -control;
  parts[2].value = survive;
  return forward + survive - control;
}

void Biped::observe(const Physics& physics, std::span<double> out) const {
  GymObservationCursor cursor(out);
  cursor.put(positions(physics).subspan(skipped_));
  cursor.put_clipped(velocities(physics), -kFastestShown, kFastestShown);
}

std::vector<GymOptionRule> biped_options(const char* healthy_z, const char* healthy_angle) {
  using enum GymOptionKind;
  return {{"forward_reward_weight", number, "1", "times velocity along x, m/s"},
          {"ctrl_cost_weight", number, "0.001", "times the squared action"},
          {"healthy_reward", number, "1", "per step while healthy"},
          {"terminate_when_unhealthy", flag, "true", "whether an unhealthy state ends the episode"},
          {"healthy_z_range", range, healthy_z, "healthy heights in metres, ends excluded"},
          {"healthy_angle_range", range, healthy_angle,
           "healthy angles of the torso in radians, ends excluded"},
          {"reset_noise_scale", scale, "0.005", "noise of the initial state"},
          {"exclude_current_positions_from_observation", flag, "true", "hides x"}};
}

GymTaskInfo hopper_v5() {
  std::vector<GymOptionRule> rules = biped_options("0.7,inf", "-0.2,0.2");
  rules.push_back({"healthy_state_range", GymOptionKind::range, "-100,100",
                   "healthy values of all other positions and velocities, ends excluded"});
  return {"Hopper-v5", with_common_options(std::move(rules), "hopper.xml", "4"),
          [](const GymOptionValues& options, const Physics& physics) -> std::unique_ptr<GymTask> {
            return std::make_unique<Biped>(options, physics, options.range("healthy_state_range"));
          }};
}

} // namespace troupe::env::gym
