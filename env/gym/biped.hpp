#pragma once

#include <optional>

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

/// The common task of Hopper and Walker2d: planar legs, rewarded for speed along x while upright.
class Biped final : public GymTask {
public:
  /// `healthy_state`: the range for all numbers of the state after x and z, if the task has one.
  Biped(const GymOptionValues& options, const Physics& physics,
        std::optional<GymRange> healthy_state);

  std::vector<ArraySpec> observations(const Physics& physics) const override;
  std::vector<const char*> reward_parts() const override {
    return {"reward_forward", "reward_ctrl", "reward_survive"};
  }
  void initialize_episode(Physics& physics, Random& random) const override;
  double position(const Physics& physics) const override { return physics.data().qpos[0]; }
  bool healthy(const Physics& physics) const override;
  bool terminates() const override { return terminates_; }
  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override;
  void observe(const Physics& physics, std::span<double> out) const override;

private:
  double forward_weight_;
  double control_weight_;
  double healthy_reward_;
  bool terminates_;
  std::optional<GymRange> healthy_state_;
  GymRange healthy_z_;
  GymRange healthy_angle_;
  double noise_;
  std::size_t skipped_;
};

/// Returns the common options, with the defaults that differ between the two tasks.
std::vector<GymOptionRule> biped_options(const char* healthy_z, const char* healthy_angle);

} // namespace troupe::env::gym
