#include "env/gym/runner.hpp"

namespace troupe::env::gym {

Runner::Runner(const GymOptionValues& options, const Physics& physics, std::size_t hidden,
               Noise noise)
    : forward_weight_(options.number("forward_reward_weight")),
      control_weight_(options.number("ctrl_cost_weight")),
      noise_(options.number("reset_noise_scale")),
      velocity_noise_(noise),
      skipped_(options.flag("exclude_current_positions_from_observation") ? hidden : 0) {
  require_sizes(physics, static_cast<int>(hidden), 0);
}

std::vector<ArraySpec> Runner::observations(const Physics& physics) const {
  return {gym_array("qpos", positions(physics).size() - skipped_),
          gym_array("qvel", velocities(physics).size())};
}

void Runner::initialize_episode(Physics& physics, Random& random) const {
  add_uniform_noise(positions(physics), noise_, random);
  if (velocity_noise_ == Noise::normal)
    add_normal_noise(velocities(physics), noise_, random);
  else
    add_uniform_noise(velocities(physics), noise_, random);
}

double Runner::reward(const Physics&, const GymStep& step, std::span<RewardPart> parts) const {
  const double forward = forward_weight_ * step.velocity;
  const double control = control_weight_ * sum_of_squares(step.action);
  parts[0].value = forward;
  parts[1].value = -control;
  return forward - control;
}

void Runner::observe(const Physics& physics, std::span<double> out) const {
  GymObservationCursor cursor(out);
  cursor.put(positions(physics).subspan(skipped_));
  cursor.put(velocities(physics));
}

std::vector<GymOptionRule> runner_options(const char* control_weight, const char* hides) {
  using enum GymOptionKind;
  return {{"forward_reward_weight", number, "1", "times velocity along x, m/s"},
          {"ctrl_cost_weight", number, control_weight, "times the squared action"},
          {"reset_noise_scale", scale, "0.1", "noise of the initial state"},
          {"exclude_current_positions_from_observation", flag, "true", hides}};
}

GymTaskInfo half_cheetah_v5() {
  return {"HalfCheetah-v5",
          with_common_options(runner_options("0.1", "hides x"), "half_cheetah.xml", "5"),
          &make_gym_task_of<Runner, 1, Runner::Noise::normal>};
}

} // namespace troupe::env::gym
