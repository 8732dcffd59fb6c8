#include <algorithm>
#include <cmath>

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

namespace {

constexpr double kLargestAngle = 0.2; // radians from upright

class InvertedPendulum final : public GymTask {
public:
  InvertedPendulum(const GymOptionValues& options, const Physics& physics)
      : noise_(options.number("reset_noise_scale")) {
    require_sizes(physics, 2, 0);
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return {gym_array("qpos", positions(physics).size()),
            gym_array("qvel", velocities(physics).size())};
  }
  std::vector<const char*> reward_parts() const override { return {"reward_survive"}; }

  void initialize_episode(Physics& physics, Random& random) const override {
    add_uniform_noise(positions(physics), noise_, random);
    add_uniform_noise(velocities(physics), noise_, random);
  }

  bool healthy(const Physics& physics) const override {
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto q = positions(physics);
    const auto v = velocities(physics);
    return std::all_of(q.begin(), q.end(), finite) && std::all_of(v.begin(), v.end(), finite)
           && std::abs(q[1]) <= kLargestAngle;
  }

  double reward(const Physics&, const GymStep& step, std::span<RewardPart> parts) const override {
    return parts[0].value = step.healthy ? 1 : 0;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    GymObservationCursor cursor(out);
    cursor.put(positions(physics));
    cursor.put(velocities(physics));
  }

private:
  double noise_;
};

} // namespace

GymTaskInfo inverted_pendulum_v5() {
  return {"InvertedPendulum-v5",
          with_common_options(
              {{"reset_noise_scale", GymOptionKind::scale, "0.01", "noise of the initial state"}},
              "inverted_pendulum.xml", "2"),
          &make_gym_task_of<InvertedPendulum>};
}

} // namespace troupe::env::gym
