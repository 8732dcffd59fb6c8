#include <algorithm>
#include <cmath>

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

namespace {

constexpr std::size_t kArm = 7;                // joints of the arm, which are observed
constexpr std::size_t kLoose = 4;              // the last joints: object x, y, goal x, y
constexpr double kPusherVelocityNoise = 0.005; // of the arm, rad/s
constexpr double kLeastDistance = 0.17;        // initial, between object and goal, metres
constexpr double kObjectX = 0.3;               // the object starts in [-0.3, 0) x [-0.2, 0.2)
constexpr double kObjectY = 0.2;

double distance(const double* a, const double* b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

class Pusher final : public GymTask {
public:
  Pusher(const GymOptionValues& options, const Physics& physics)
      : near_weight_(options.number("reward_near_weight")),
        distance_weight_(options.number("reward_dist_weight")),
        control_weight_(options.number("reward_control_weight")),
        tips_(physics.id(mjOBJ_BODY, "tips_arm")),
        object_(physics.id(mjOBJ_BODY, "object")),
        goal_(physics.id(mjOBJ_BODY, "goal")) {
    require_sizes(physics, kArm, kArm);
  }

  std::vector<ArraySpec> observations(const Physics&) const override {
    return {gym_array("qpos", kArm), gym_array("qvel", kArm), gym_array("tips_arm", 3),
            gym_array("object", 3), gym_array("goal", 3)};
  }
  std::vector<const char*> reward_parts() const override {
    return {"reward_dist", "reward_ctrl", "reward_near"};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    double x = 0;
    double y = 0;
    do {
      x = random.uniform(-kObjectX, 0);
      y = random.uniform(-kObjectY, kObjectY);
    } while (std::hypot(x, y) <= kLeastDistance); // the goal is at 0, 0
    const auto loose = positions(physics).last(kLoose);
    loose[0] = x;
    loose[1] = y;
    loose[2] = loose[3] = 0;
    const auto v = velocities(physics);
    add_uniform_noise(v.first(v.size() - kLoose), kPusherVelocityNoise, random);
    std::fill(v.end() - kLoose, v.end(), 0.0);
  }

  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override {
    const double near = -distance(body(physics, object_), body(physics, tips_)) * near_weight_;
    const double far = -distance(body(physics, object_), body(physics, goal_)) * distance_weight_;
    const double control = -sum_of_squares(step.action) * control_weight_;
    parts[0].value = far;
    parts[1].value = control;
    parts[2].value = near;
    return far + control + near;
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    GymObservationCursor cursor(out);
    cursor.put(positions(physics).first(kArm));
    cursor.put(velocities(physics).first(kArm));
    cursor.put({body(physics, tips_), 3});
    cursor.put({body(physics, object_), 3});
    cursor.put({body(physics, goal_), 3});
  }

private:
  static const double* body(const Physics& physics, int id) { return physics.data().xpos + 3 * id; }

  double near_weight_;
  double distance_weight_;
  double control_weight_;
  int tips_;
  int object_;
  int goal_;
};

} // namespace

GymTaskInfo pusher_v5() {
  using enum GymOptionKind;
  return {"Pusher-v5",
          with_common_options(
              {{"reward_near_weight", number, "0.5", "times the distance of finger and object, m"},
               {"reward_dist_weight", number, "1", "times the distance of object and goal, m"},
               {"reward_control_weight", number, "0.1", "times the squared action"}},
              "pusher_v5.xml", "5", "100"),
          &make_gym_task_of<Pusher>};
}

} // namespace troupe::env::gym
