#pragma once

#include <memory>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

/// One of Gym's tasks as an Environment. A step is the same as Gymnasium's: mj_step, frame_skip
/// times, and then mj_rnePostConstraint if the task reads contact forces. step() does not allocate.
///
/// save_state() saves the state before the last physics step, and load_state() repeats that step.
/// This restores the quantities that MuJoCo derives in the step bit for bit, although they are
/// older than the state.
class GymEnvironment final : public Environment {
public:
  GymEnvironment(const GymTaskInfo& info, const GymOptions& options);

  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;
  Physics* physics() override { return &physics_; }

  /// Starts an episode with these positions [nq] and velocities [nv], to replay recordings.
  TimeStep reset_to(std::span<const double> qpos, std::span<const double> qvel,
                    std::span<std::byte> observation);

  std::span<const RewardPart> reward_parts() const { return parts_; }

private:
  void clear(); // to the model's default state, without derived quantities
  TimeStep begin(std::span<std::byte> observation); // starts at the physics' qpos and qvel
  void keep_state();                                // saves the state for the next evaluate()
  void evaluate();                                  // one physics step, or forward() after a reset
  void observe(std::span<std::byte> observation);

  GymOptionValues options_;
  Physics physics_;
  std::unique_ptr<GymTask> task_;
  EnvironmentSpec spec_;
  int frame_skip_;
  double step_seconds_;
  Random random_;
  std::int64_t steps_ = 0;
  bool running_ = false;          // an episode has started and not ended, and no step has failed
  std::vector<double> kept_;      // MuJoCo's integration state; see keep_state()
  std::vector<RewardPart> parts_; // of the last reward
  std::vector<double> values_;    // the numbers of one observation
  std::vector<double> action_;    // the clipped action
};

} // namespace troupe::env::gym
