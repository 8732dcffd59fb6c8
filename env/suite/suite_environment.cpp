#include "env/suite/suite_environment.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

namespace {

int steps_per_control(const TaskInfo& info, double timestep) {
  if (info.control_timestep_seconds == 0)
    return 1;
  const double ratio = info.control_timestep_seconds / timestep;
  const double rounded = std::round(ratio);
  if (rounded < 1 || std::abs(ratio - rounded) > 1e-8)
    throw std::runtime_error(
        "task " + info.name + ": control time step " + std::to_string(info.control_timestep_seconds)
        + " s must be a multiple of the model's " + std::to_string(timestep) + " s");
  return static_cast<int>(rounded);
}

EnvironmentSpec make_spec(const TaskInfo& info, const Physics& physics, const Task& task,
                          int physics_steps) {
  EnvironmentSpec spec;
  spec.name = info.name;
  spec.observations = task.observations(physics);
  spec.control_timestep_seconds = physics.model().opt.timestep * physics_steps;
  if (info.time_limit_seconds != kNoTimeLimit)
    spec.episode_steps = static_cast<std::int64_t>(
        std::ceil(info.time_limit_seconds / spec.control_timestep_seconds));
  spec.action = control_bounds(physics);
  return spec;
}

} // namespace

SuiteEnvironment::SuiteEnvironment(const TaskInfo& info, const std::string& models)
    : physics_(load_model(models, info.xml, info.variant, info.edit)),
      task_(info.make(physics_)),
      physics_steps_(steps_per_control(info, physics_.model().opt.timestep)) {
  spec_ = make_spec(info, physics_, *task_, physics_steps_);
  values_.resize(spec_.observation_bytes() / sizeof(double));
  action_.resize(spec_.action.size());
}

void SuiteEnvironment::observe(std::span<std::byte> observation) {
  task_->observe(physics_, values_);
  std::memcpy(observation.data(), values_.data(), values_.size() * sizeof(double));
}

TimeStep SuiteEnvironment::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  running_ = false;
  random_ = Random(seed);
  steps_ = 0;
  physics_.reset();
  task_->initialize_episode(physics_, random_);
  physics_.forward_without_actuation();
  observe(observation);
  running_ = true;
  return {};
}

TimeStep SuiteEnvironment::step(std::span<const double> action, std::span<std::byte> observation) {
  check_step(spec_, running_, action, observation, action_);
  running_ = false; // until this step has succeeded
  task_->before_step(physics_, action_);
  physics_.step(physics_steps_);
  task_->after_step(physics_);
  TimeStep result{StepType::mid, task_->reward(physics_), 1};
  observe(observation);
  const bool out_of_time = ++steps_ == spec_.episode_steps; // never true without a limit
  // At the time limit the discount is 1 in any state, as in dm_control.
  const auto end = out_of_time ? std::optional(1.0) : task_->termination(physics_);
  result.discount = end.value_or(1);
  running_ = !end;
  if (!running_)
    result.step_type = StepType::last;
  return result;
}

void SuiteEnvironment::continue_here() {
  steps_ = 0;
  running_ = true;
}

void SuiteEnvironment::save_state(std::vector<std::byte>& out) const {
  save_value(out, random_);
  save_value(out, steps_);
  save_value(out, static_cast<std::uint8_t>(running_));
  physics_.save_state(out);
}

std::span<const std::byte> SuiteEnvironment::load_state(std::span<const std::byte> in) {
  running_ = false;
  Random random;
  std::int64_t steps = 0;
  std::uint8_t running = 0;
  load_value(in, random, "random stream");
  load_value(in, steps, "step counter");
  load_value(in, running, "episode flag");
  in = physics_.load_state(in);
  random_ = random;
  steps_ = steps;
  running_ = running != 0;
  return in;
}

} // namespace troupe::env
