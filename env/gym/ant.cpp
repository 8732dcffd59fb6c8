#include <algorithm>
#include <cmath>

#include "env/gym/gym_task.hpp"
#include "env/text/number_in.hpp"

namespace troupe::env::gym {

namespace {

/// Returns the index of the body with this index or name.
int find_body(const Physics& physics, const std::string& text) {
  const auto number = number_in<int>(text);
  if (!number)
    return physics.id(mjOBJ_BODY, text);
  if (*number < 0 || *number >= static_cast<int>(physics.model().nbody))
    throw std::invalid_argument("Ant-v5: option main_body is " + text + "; model '" + physics.name()
                                + "' has bodies 0 to " + std::to_string(physics.model().nbody - 1));
  return *number;
}

class Ant final : public GymTask {
public:
  Ant(const GymOptionValues& options, const Physics& physics)
      : forward_weight_(options.number("forward_reward_weight")),
        control_weight_(options.number("ctrl_cost_weight")),
        contact_weight_(options.number("contact_cost_weight")),
        healthy_reward_(options.number("healthy_reward")),
        body_(find_body(physics, options.text("main_body"))),
        terminates_(options.flag("terminate_when_unhealthy")),
        healthy_z_(options.range("healthy_z_range")),
        force_range_(options.range("contact_force_range")),
        noise_(options.number("reset_noise_scale")),
        skipped_(options.flag("exclude_current_positions_from_observation") ? 2 : 0),
        shows_forces_(options.flag("include_cfrc_ext_in_observation")) {
    require_sizes(physics, 3, 0);
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    std::vector<ArraySpec> arrays{gym_array("qpos", positions(physics).size() - skipped_),
                                  gym_array("qvel", velocities(physics).size())};
    if (shows_forces_) // without the world body's
      arrays.push_back(gym_array("cfrc_ext", contact_forces(physics).size() - 6));
    return arrays;
  }

  std::vector<const char*> reward_parts() const override {
    return {"reward_forward", "reward_ctrl", "reward_contact", "reward_survive"};
  }

  bool reads_contact_forces() const override { return true; }

  void initialize_episode(Physics& physics, Random& random) const override {
    add_uniform_noise(positions(physics), noise_, random);
    add_normal_noise(velocities(physics), noise_, random);
  }

  double position(const Physics& physics) const override { return physics.data().xpos[3 * body_]; }

  bool healthy(const Physics& physics) const override {
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto q = positions(physics);
    const auto v = velocities(physics);
    return std::all_of(q.begin(), q.end(), finite) && std::all_of(v.begin(), v.end(), finite)
           && healthy_z_.low <= q[2] && q[2] <= healthy_z_.high;
  }

  bool terminates() const override { return terminates_; }

  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override {
    double squares = 0;
    for (const double force : contact_forces(physics)) {
      const double clipped = std::clamp(force, force_range_.low, force_range_.high);
      squares += clipped * clipped;
    }
    const double forward = step.velocity * forward_weight_;
    const double survive = step.healthy ? healthy_reward_ : 0;
    const double control = control_weight_ * sum_of_squares(step.action);
    const double contact = contact_weight_ * squares;
    parts[0].value = forward;
    parts[1].value = -control;
    parts[2].value = -contact;
    parts[3].value = survive;
    return forward + survive - (control + contact);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    GymObservationCursor cursor(out);
    cursor.put(positions(physics).subspan(skipped_));
    cursor.put(velocities(physics));
    if (shows_forces_)
      cursor.put_clipped(contact_forces(physics).subspan(6), force_range_.low, force_range_.high);
  }

private:
  static std::span<const double> contact_forces(const Physics& physics) {
    return {physics.data().cfrc_ext, 6 * static_cast<std::size_t>(physics.model().nbody)};
  }

  double forward_weight_;
  double control_weight_;
  double contact_weight_;
  double healthy_reward_;
  int body_;
  bool terminates_;
  GymRange healthy_z_;
  GymRange force_range_;
  double noise_;
  std::size_t skipped_;
  bool shows_forces_;
};

} // namespace

GymTaskInfo ant_v5() {
  using enum GymOptionKind;
  return {"Ant-v5",
          with_common_options(
              {{"forward_reward_weight", number, "1", "times velocity along x, m/s"},
               {"ctrl_cost_weight", number, "0.5", "times the squared action"},
               {"contact_cost_weight", number, "0.0005", "times the squared contact forces"},
               {"healthy_reward", number, "1", "per step while healthy"},
               {"main_body", text, "1", "body, by number or name, whose x measures forward motion"},
               {"terminate_when_unhealthy", flag, "true",
                "whether an unhealthy state ends the episode"},
               {"healthy_z_range", range, "0.2,1", "healthy heights in metres, ends included"},
               {"contact_force_range", range, "-1,1", "contact forces are clipped to this range"},
               {"reset_noise_scale", scale, "0.1", "noise of the initial state"},
               {"exclude_current_positions_from_observation", flag, "true", "hides x and y"},
               {"include_cfrc_ext_in_observation", flag, "true", "shows contact forces"}},
              "ant.xml", "5"),
          &make_gym_task_of<Ant>};
}

} // namespace troupe::env::gym
