#pragma once

#include <memory>
#include <vector>

#include "env/environment.hpp"
#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

/// One of Gym's tasks as an Environment. Steps as Gymnasium does: frame_skip times mj_step, then
/// (for tasks that read contact forces) mj_rnePostConstraint. step() does not allocate.
/// A state is saved as it was before the last physics step, which load_state() does again: so
/// what MuJoCo derived in it is restored bit for bit, although it is older than the state.
class GymEnvironment final : public Environment {
public:
  GymEnvironment(const GymTaskInfo& info, const GymOptions& options);

  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;
  Physics* physics() override { return &physics_; }

  /// Begins an episode at these positions [nq] and velocities [nv], for replaying recordings.
  TimeStep reset_to(std::span<const double> qpos, std::span<const double> qvel,
                    std::span<std::byte> observation);

  std::span<const RewardPart> reward_parts() const { return parts_; }

private:
  void clear(); // the model's default state, nothing derived yet
  TimeStep begin(std::span<std::byte> observation); // an episode at the physics' qpos and qvel
  void keep_state();                                // what the next evaluation starts from
  void evaluate();                                  // one physics step, or forward() at a reset
  void observe(std::span<std::byte> observation);

  GymOptionValues options_;
  Physics physics_;
  std::unique_ptr<GymTask> task_;
  EnvironmentSpec spec_;
  int frame_skip_;
  double step_seconds_;
  Random random_;
  std::int64_t steps_ = 0;
  bool running_ = false;          // between a first and a last step, and no error since
  std::vector<double> kept_;      // MuJoCo's integration state, see keep_state()
  std::vector<RewardPart> parts_; // of the last reward
  std::vector<double> values_;    // of an observation
  std::vector<double> action_;    // clipped
};

} // namespace troupe::env::gym
