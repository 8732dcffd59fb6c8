#include <algorithm>
#include <cmath>

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

namespace {

constexpr int kLinks = 2; // joints of the arm; the target's x and y come last
constexpr std::size_t kTarget = 2;
constexpr double kPositionNoise = 0.1;          // radians
constexpr double kReacherVelocityNoise = 0.005; // rad/s
constexpr double kReach = 0.2;                  // metres; targets are within this radius

class Reacher final : public GymTask {
public:
  Reacher(const GymOptionValues& options, const Physics& physics)
      : distance_weight_(options.number("reward_dist_weight")),
        control_weight_(options.number("reward_control_weight")),
        tip_(physics.id(mjOBJ_BODY, "fingertip")),
        target_(physics.id(mjOBJ_BODY, "target")) {
    require_sizes(physics, kLinks + 2, kLinks + 2);
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    return {gym_array("cosine", kLinks), gym_array("sine", kLinks),
            gym_array("target", positions(physics).size() - kLinks), gym_array("qvel", kLinks),
            gym_array("target_to_fingertip", 2)};
  }
  std::vector<const char*> reward_parts() const override { return {"reward_dist", "reward_ctrl"}; }

  void initialize_episode(Physics& physics, Random& random) const override {
    const auto q = positions(physics);
    add_uniform_noise(q, kPositionNoise, random);
    double x = 0;
    double y = 0;
    do {
      x = random.uniform(-kReach, kReach);
      y = random.uniform(-kReach, kReach);
    } while (std::hypot(x, y) >= kReach);
    q[q.size() - 2] = x;
    q[q.size() - 1] = y;
    const auto v = velocities(physics);
    add_uniform_noise(v.first(v.size() - kTarget), kReacherVelocityNoise, random);
    std::fill(v.end() - kTarget, v.end(), 0.0);
  }

  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override {
    const double* tip = body(physics, tip_);
    const double* target = body(physics, target_);
    const double far =
        -std::hypot(tip[0] - target[0], tip[1] - target[1], tip[2] - target[2]) * distance_weight_;
    const double control = -sum_of_squares(step.action) * control_weight_;
    parts[0].value = far;
    parts[1].value = control;
    return far + control;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    GymObservationCursor cursor(out);
    const auto q = positions(physics);
    for (std::size_t i = 0; i < kLinks; ++i)
      cursor.put(std::cos(q[i]));
    for (std::size_t i = 0; i < kLinks; ++i)
      cursor.put(std::sin(q[i]));
    cursor.put(q.subspan(kLinks));
    cursor.put(velocities(physics).first(kLinks));
    cursor.put_difference(body(physics, tip_), body(physics, target_), 2);
  }

private:
  static const double* body(const Physics& physics, int id) { return physics.data().xpos + 3 * id; }

  double distance_weight_;
  double control_weight_;
  int tip_;
  int target_;
};

} // namespace

GymTaskInfo reacher_v5() {
  using enum GymOptionKind;
  return {"Reacher-v5",
          with_common_options(
              {{"reward_dist_weight", number, "1", "times the distance of finger and target, m"},
               {"reward_control_weight", number, "1", "times the squared action"}},
              "reacher.xml", "2", "50"),
          &make_gym_task_of<Reacher>};
}

} // namespace troupe::env::gym
