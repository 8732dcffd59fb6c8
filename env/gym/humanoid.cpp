#include <algorithm>

#include "env/gym/humanoid_body.hpp"

namespace troupe::env::gym {

namespace {

constexpr std::size_t kInertia = 10; // numbers of a body in cinert
constexpr std::size_t kSpatial = 6;  // numbers in a spatial velocity or force
constexpr std::size_t kRoot = 6;     // velocities of the root, which no actuator drives

/// The x coordinate of the centre of mass of all bodies.
double mass_centre(const Physics& physics) {
  const mjModel& model = physics.model();
  double moment = 0;
  double mass = 0;
  for (int i = 0; i < static_cast<int>(model.nbody); ++i) {
    moment += model.body_mass[i] * physics.data().xipos[3 * i];
    mass += model.body_mass[i];
  }
  return moment / mass;
}

class Humanoid final : public GymTask {
public:
  Humanoid(const GymOptionValues& options, const Physics& physics)
      : body_(options, physics),
        forward_weight_(options.number("forward_reward_weight")),
        control_weight_(options.number("ctrl_cost_weight")),
        contact_weight_(options.number("contact_cost_weight")),
        contact_range_(options.range("contact_cost_range")),
        healthy_reward_(options.number("healthy_reward")),
        terminates_(options.flag("terminate_when_unhealthy")),
        healthy_z_(options.range("healthy_z_range")) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return body_.observations(physics);
  }
  std::vector<const char*> reward_parts() const override {
    return {"reward_survive", "reward_forward", "reward_ctrl", "reward_contact"};
  }
  bool reads_contact_forces() const override { return true; }
  void initialize_episode(Physics& physics, Random& random) const override {
    body_.initialize_episode(physics, random);
  }
  double position(const Physics& physics) const override { return mass_centre(physics); }
  bool healthy(const Physics& physics) const override {
    return inside(physics.data().qpos[2], healthy_z_);
  }
  bool terminates() const override { return terminates_; }

  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override {
    const double forward = forward_weight_ * step.velocity;
    const double survive = step.healthy ? healthy_reward_ : 0;
    const double control = control_weight_ * sum_of_squares(step.action);
    const double contact = humanoid_contact_cost(physics, contact_weight_, contact_range_);
    parts[0].value = survive;
    parts[1].value = forward;
    parts[2].value = -control;
    parts[3].value = -contact;
    return forward + survive - (control + contact);
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    body_.observe(physics, out);
  }

private:
  HumanoidBody body_;
  double forward_weight_;
  double control_weight_;
  double contact_weight_;
  GymRange contact_range_;
  double healthy_reward_;
  bool terminates_;
  GymRange healthy_z_;
};

} // namespace

HumanoidBody::HumanoidBody(const GymOptionValues& options, const Physics& physics)
    : noise_(options.number("reset_noise_scale")),
      skipped_(options.flag("exclude_current_positions_from_observation") ? 2 : 0),
      shows_inertia_(options.flag("include_cinert_in_observation")),
      shows_velocity_(options.flag("include_cvel_in_observation")),
      shows_actuators_(options.flag("include_qfrc_actuator_in_observation")),
      shows_forces_(options.flag("include_cfrc_ext_in_observation")),
      bodies_(static_cast<std::size_t>(physics.model().nbody) - 1) {
  require_sizes(physics, 3, kRoot);
}

std::vector<ArraySpec> HumanoidBody::observations(const Physics& physics) const {
  std::vector<ArraySpec> arrays{gym_array("qpos", positions(physics).size() - skipped_),
                                gym_array("qvel", velocities(physics).size())};
  if (shows_inertia_)
    arrays.push_back(gym_array("cinert", kInertia * bodies_));
  if (shows_velocity_)
    arrays.push_back(gym_array("cvel", kSpatial * bodies_));
  if (shows_actuators_)
    arrays.push_back(gym_array("qfrc_actuator", velocities(physics).size() - kRoot));
  if (shows_forces_)
    arrays.push_back(gym_array("cfrc_ext", kSpatial * bodies_));
  return arrays;
}

void HumanoidBody::observe(const Physics& physics, std::span<double> out) const {
  const mjData& data = physics.data();
  GymObservationCursor cursor(out);
  cursor.put(positions(physics).subspan(skipped_));
  cursor.put(velocities(physics));
  if (shows_inertia_)
    cursor.put({data.cinert + kInertia, kInertia * bodies_});
  if (shows_velocity_)
    cursor.put({data.cvel + kSpatial, kSpatial * bodies_});
  if (shows_actuators_)
    cursor.put({data.qfrc_actuator + kRoot, velocities(physics).size() - kRoot});
  if (shows_forces_)
    cursor.put({data.cfrc_ext + kSpatial, kSpatial * bodies_});
}

void HumanoidBody::initialize_episode(Physics& physics, Random& random) const {
  add_uniform_noise(positions(physics), noise_, random);
  add_uniform_noise(velocities(physics), noise_, random);
}

double humanoid_contact_cost(const Physics& physics, double weight, const GymRange& range) {
  const std::size_t numbers = kSpatial * static_cast<std::size_t>(physics.model().nbody);
  return std::clamp(weight * sum_of_squares({physics.data().cfrc_ext, numbers}), range.low,
                    range.high);
}

std::vector<GymOptionRule> with_humanoid_options(std::vector<GymOptionRule> own) {
  using enum GymOptionKind;
  own.insert(own.end(),
             {{"reset_noise_scale", scale, "0.01", "noise of the initial state"},
              {"exclude_current_positions_from_observation", flag, "true", "hides x and y"},
              {"include_cinert_in_observation", flag, "true", "shows inertias of the bodies"},
              {"include_cvel_in_observation", flag, "true", "shows velocities of the bodies"},
              {"include_qfrc_actuator_in_observation", flag, "true", "shows actuator forces"},
              {"include_cfrc_ext_in_observation", flag, "true", "shows contact forces"}});
  return own;
}

GymTaskInfo humanoid_v5() {
  using enum GymOptionKind;
  return {"Humanoid-v5",
          with_common_options(
              with_humanoid_options(
                  {{"forward_reward_weight", number, "1.25",
                    "times velocity of the centre of mass along x, m/s"},
                   {"ctrl_cost_weight", number, "0.1", "times the squared action"},
                   {"contact_cost_weight", number, "5e-7", "times the squared contact forces"},
                   {"contact_cost_range", range, "-inf,10",
                    "the contact cost is clipped to this range"},
                   {"healthy_reward", number, "5", "per step while healthy"},
                   {"terminate_when_unhealthy", flag, "true",
                    "whether an unhealthy state ends the episode"},
                   {"healthy_z_range", range, "1,2", "healthy heights in metres, ends excluded"}}),
              "humanoid.xml", "5"),
          &make_gym_task_of<Humanoid>};
}

} // namespace troupe::env::gym
