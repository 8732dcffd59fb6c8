#include "env/gym/humanoid_body.hpp"

namespace troupe::env::gym {

namespace {

class HumanoidStandup final : public GymTask {
public:
  HumanoidStandup(const GymOptionValues& options, const Physics& physics)
      : body_(options, physics),
        control_weight_(options.number("ctrl_cost_weight")),
        impact_weight_(options.number("impact_cost_weight")),
        impact_range_(options.range("impact_cost_range")) {}

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return body_.observations(physics);
  }
  std::vector<const char*> reward_parts() const override {
    return {"reward_linup", "reward_quadctrl", "reward_impact"};
  }
  bool reads_contact_forces() const override { return true; }
  void initialize_episode(Physics& physics, Random& random) const override {
    body_.initialize_episode(physics, random);
  }

  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override {
    const double up = physics.data().qpos[2]
                      / physics.model().opt.timestep; // as in Gym, the height and not its change
    const double control = control_weight_ * sum_of_squares(step.action);
    const double impact = humanoid_contact_cost(physics, impact_weight_, impact_range_);
    parts[0].value = up;
    parts[1].value = -control;
    parts[2].value = -impact;
    return up - control - impact + 1;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    body_.observe(physics, out);
  }

private:
  HumanoidBody body_;
  double control_weight_;
  double impact_weight_;
  GymRange impact_range_;
};

} // namespace

GymTaskInfo humanoid_standup_v5() {
  using enum GymOptionKind;
  return {"HumanoidStandup-v5",
          with_common_options(
              with_humanoid_options(
                  {{"uph_cost_weight", number, "1", "has no effect, as in Gymnasium 1.4.0"},
                   {"ctrl_cost_weight", number, "0.1", "times the squared action"},
                   {"impact_cost_weight", number, "5e-7", "times the squared contact forces"},
                   {"impact_cost_range", range, "-inf,10",
                    "the impact cost is clipped to this range"}}),
              "humanoidstandup.xml", "5"),
          &make_gym_task_of<HumanoidStandup>};
}

} // namespace troupe::env::gym
