#include <cmath>
#include <stdexcept>

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

namespace {

constexpr double kLowestTip = 1;     // metres; below this it has fallen
constexpr double kUprightTip = 2;    // metres; no penalty at this height
constexpr double kLargestShown = 10; // limit of observed velocities and the constraint force

class InvertedDoublePendulum final : public GymTask {
public:
  InvertedDoublePendulum(const GymOptionValues& options, const Physics& physics)
      : healthy_reward_(options.number("healthy_reward")),
        noise_(options.number("reset_noise_scale")) {
    require_sizes(physics, 1, 3);
    if (physics.model().nsite < 1)
      throw std::invalid_argument("model '" + physics.name()
                                  + "' has no site; the task reads the first one's position:"
                                    " choose another xml_file");
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    const std::size_t angles = positions(physics).size() - 1;
    return {gym_array("position", 1), gym_array("sine", angles), gym_array("cosine", angles),
            gym_array("qvel", velocities(physics).size()), gym_array("qfrc_constraint", 1)};
  }
  std::vector<const char*> reward_parts() const override {
    return {"reward_survive", "distance_penalty", "velocity_penalty"};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    add_uniform_noise(positions(physics), noise_, random);
    add_normal_noise(velocities(physics), noise_, random);
  }

  bool healthy(const Physics& physics) const override {
    return !(physics.data().site_xpos[2] <= kLowestTip);
  }

  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override {
    const double x = physics.data().site_xpos[0];
    const double missing = physics.data().site_xpos[2] - kUprightTip;
    const double v1 = physics.data().qvel[1];
    const double v2 = physics.data().qvel[2];
    const double distance = 0.01 * x * x + missing * missing;
    const double velocity = 0.001 * v1 * v1 + 0.005 * v2 * v2;
    const double survive = step.healthy ? healthy_reward_ : 0;
    parts[0].value = survive;
    parts[1].value = -distance;
    parts[2].value = -velocity;
    return survive - distance - velocity;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    GymObservationCursor cursor(out);
    const auto q = positions(physics);
    cursor.put(q[0]);
    for (const double angle : q.subspan(1))
      cursor.put(std::sin(angle));
    for (const double angle : q.subspan(1))
      cursor.put(std::cos(angle));
    cursor.put_clipped(velocities(physics), -kLargestShown, kLargestShown);
    cursor.put_clipped({physics.data().qfrc_constraint, 1}, -kLargestShown, kLargestShown);
  }

private:
  double healthy_reward_;
  double noise_;
};

} // namespace

GymTaskInfo inverted_double_pendulum_v5() {
  using enum GymOptionKind;
  return {
      "InvertedDoublePendulum-v5",
      with_common_options({{"healthy_reward", number, "10", "per step while the tip is above 1 m"},
                           {"reset_noise_scale", scale, "0.1", "noise of the initial state"}},
                          "inverted_double_pendulum.xml", "5"),
      &make_gym_task_of<InvertedDoublePendulum>};
}

} // namespace troupe::env::gym
