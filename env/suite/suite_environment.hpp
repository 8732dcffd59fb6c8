#pragma once

#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/suite/task.hpp"

namespace troupe::env {

/// A control-suite task as an Environment. It has named float64 observations and the task's action
/// bounds. The time limit ends an episode with discount 1. step() does not allocate.
class SuiteEnvironment final : public Environment {
public:
  SuiteEnvironment(const TaskInfo& info, const std::string& models);

  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;
  Physics* physics() override { return &physics_; }

  /// Starts an episode in the current state of the physics, for replays. Call forward() first.
  void continue_here();

  const Task& task() const { return *task_; }
  int physics_steps() const { return physics_steps_; } // per control step

private:
  void observe(std::span<std::byte> observation);

  Physics physics_;
  std::unique_ptr<Task> task_;
  EnvironmentSpec spec_;
  int physics_steps_;
  Random random_;
  std::int64_t steps_ = 0;
  bool running_ = false;       // an episode has started and not ended, and no step has failed
  std::vector<double> values_; // the numbers of one observation
  std::vector<double> action_; // the clipped action
};

} // namespace troupe::env
