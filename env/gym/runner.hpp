#pragma once

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

/// The common task of HalfCheetah and Swimmer: rewarded for speed along x and charged for control.
/// Episodes end only at the time limit.
class Runner final : public GymTask {
public:
  enum class Noise { uniform, normal }; // of the initial velocities

  /// The first `hidden` positions are not observed if the options say so.
  Runner(const GymOptionValues& options, const Physics& physics, std::size_t hidden, Noise noise);

  std::vector<ArraySpec> observations(const Physics& physics) const override;
  std::vector<const char*> reward_parts() const override {
    return {"reward_forward", "reward_ctrl"};
  }
  void initialize_episode(Physics& physics, Random& random) const override;
  double position(const Physics& physics) const override { return physics.data().qpos[0]; }
  double reward(const Physics& physics, const GymStep& step,
                std::span<RewardPart> parts) const override;
  void observe(const Physics& physics, std::span<double> out) const override;

private:
  double forward_weight_;
  double control_weight_;
  double noise_;
  Noise velocity_noise_;
  std::size_t skipped_;
};

/// Returns the task's options. `control_weight`: default weight of the control cost. `hides`:
/// description of the positions that are not observed.
std::vector<GymOptionRule> runner_options(const char* control_weight, const char* hides);

} // namespace troupe::env::gym
