#include "env/suite/humanoid_task.hpp"

#include <cmath>

#include "env/suite/placement.hpp"
#include "env/suite/rewards.hpp"

namespace troupe::env {

namespace {

constexpr double kHumanoidStandHeight = 1.4; // of the head, metres: the reward is 1 from here on
constexpr int kRootPositions = 7;            // of the root's free joint

class Humanoid final : public Task {
public:
  Humanoid(Physics& physics, const HumanoidOptions& options)
      : trunk_(physics.id(mjOBJ_BODY, options.trunk)),
        head_(physics.id(mjOBJ_BODY, "head")),
        velocity_(physics.id(mjOBJ_SENSOR, options.trunk_velocity)),
        up_(9 * trunk_ + options.up_entry),
        speed_(options.speed),
        pure_state_(options.pure_state) {
    for (std::size_t i = 0; i < limbs_.size(); ++i)
      limbs_[i] = physics.id(mjOBJ_BODY, options.limbs[i]);
  }

  std::vector<ArraySpec> observations(const Physics& physics) const override {
    const ArraySpec velocity = float64_array("velocity", {std::ssize(velocities(physics))});
    if (pure_state_)
      return {float64_array("position", {std::ssize(positions(physics))}), velocity};
    return {float64_array("joint_angles", {std::ssize(positions(physics)) - kRootPositions}),
            float64_array("head_height", {}),
            float64_array("extremities", {3 * static_cast<std::int64_t>(limbs_.size())}),
            float64_array("torso_vertical", {3}),
            float64_array("com_velocity", {3}),
            velocity};
  }

  void initialize_episode(Physics& physics, Random& random) const override {
    draw_until_free(physics, [&] { randomize_joints(physics, random); });
  }

  void observe(const Physics& physics, std::span<double> out) const override {
    const mjData& data = physics.data();
    ObservationWriter writer(out);
    if (pure_state_) {
      writer.put(positions(physics));
    } else {
      writer.put(positions(physics).subspan(kRootPositions));
      writer.put(head_height(physics));
      for (const int limb : limbs_)
        put_in_trunk_frame(data, limb, writer);
      writer.put(data.xmat + 9 * trunk_ + 6, 3);
      writer.put(physics.sensor(velocity_).data(), 3);
    }
    writer.put(velocities(physics));
  }

  double reward(const Physics& physics) const override {
    const double standing = tolerance(
        head_height(physics),
        {.lower = kHumanoidStandHeight, .upper = kInfinity, .margin = kHumanoidStandHeight / 4});
    const double upright = tolerance(physics.data().xmat[up_], {.lower = .9,
                                                                .upper = kInfinity,
                                                                .margin = 1.9,
                                                                .sigmoid = Sigmoid::linear,
                                                                .value_at_margin = 0});
    return (4 + small_control(physics)) / 5 * standing * upright * motion(physics);
  }

private:
  double head_height(const Physics& physics) const { return physics.data().xpos[3 * head_ + 2]; }

  void put_in_trunk_frame(const mjData& data, int body, ObservationWriter& writer) const {
    double in_world[3];
    double in_trunk[3];
    mju_sub3(in_world, data.xpos + 3 * body, data.xpos + 3 * trunk_);
    mju_mulMatTVec3(in_trunk, data.xmat + 9 * trunk_, in_world);
    writer.put(in_trunk, 3);
  }

  double small_control(const Physics& physics) const {
    return mean_tolerance(controls(physics),
                          {.margin = 1, .sigmoid = Sigmoid::quadratic, .value_at_margin = 0});
  }

  /// Rewards standing still, or moving at `speed_` in any direction.
  double motion(const Physics& physics) const {
    const auto velocity = physics.sensor(velocity_);
    if (speed_ == 0)
      return mean_tolerance(velocity.first(2), {.margin = 2});
    const double speed = std::sqrt(velocity[0] * velocity[0] + velocity[1] * velocity[1]);
    const double moving = tolerance(speed, {.lower = speed_,
                                            .upper = kInfinity,
                                            .margin = speed_,
                                            .sigmoid = Sigmoid::linear,
                                            .value_at_margin = 0});
    return (5 * moving + 1) / 6;
  }

  int trunk_;
  int head_;
  int velocity_;
  int up_; // index into mjData.xmat
  std::array<int, 4> limbs_{};
  double speed_; // metres/second
  bool pure_state_;
};

} // namespace

std::unique_ptr<Task> make_humanoid(Physics& physics, const HumanoidOptions& options) {
  return std::make_unique<Humanoid>(physics, options);
}

} // namespace troupe::env
