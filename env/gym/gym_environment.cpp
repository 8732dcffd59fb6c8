#include "env/gym/gym_environment.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "env/checks.hpp"
#include "env/mujoco_errors.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env::gym {

namespace {

constexpr int kKeptState = mjSTATE_INTEGRATION;

/// A name that starts with '/' or '.' is a path; any other name is a file of Gym's models.
std::shared_ptr<const CompiledModel>
load_gym_model(const std::string& task, const std::string& xml_file, const std::string& models) {
  if (xml_file.front() == '~')
    throw std::invalid_argument(task + ": option xml_file is '" + xml_file
                                + "'; a path begins with '/' or '.'; write out the home folder");
  std::filesystem::path path = xml_file;
  if (xml_file.front() != '/' && xml_file.front() != '.')
    path = (models.empty() ? models_folder("gym", TROUPE_GYM_DIR) : std::filesystem::path(models))
           / path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw std::runtime_error(task + ": the model " + path.string()
                             + " does not exist; name a file of Gym's models"
                               " (gymnasium/envs/mujoco/assets), which"
                               " experiments/packaging/install_dependencies.sh unpacks, or a path");
  return load_model(path.parent_path().string(), path.filename().string());
}

EnvironmentSpec make_spec(const GymTaskInfo& info, const GymOptionValues& options,
                          const Physics& physics, const GymTask& task) {
  EnvironmentSpec spec;
  spec.name = info.name;
  spec.observations = task.observations(physics);
  std::erase_if(spec.observations, [](const ArraySpec& array) { return array.elements() == 0; });
  spec.control_timestep_seconds = physics.model().opt.timestep * options.count("frame_skip");
  spec.episode_steps =
      std::max<std::int64_t>(0, static_cast<std::int64_t>(options.number("max_episode_steps")));
  spec.action = control_bounds(physics);
  return spec;
}

} // namespace

GymEnvironment::GymEnvironment(const GymTaskInfo& info, const GymOptions& options)
    : options_(info.name, info.options, options.values),
      physics_(load_gym_model(info.name, options_.text("xml_file"), options.models)),
      task_(info.make(options_, physics_)),
      spec_(make_spec(info, options_, physics_, *task_)),
      frame_skip_(options_.count("frame_skip")),
      step_seconds_(spec_.control_timestep_seconds),
      kept_(static_cast<std::size_t>(mj_stateSize(&physics_.model(), kKeptState))) {
  for (const char* name : task_->reward_parts())
    parts_.push_back({name, 0});
  values_.resize(spec_.observation_bytes() / sizeof(double));
  action_.resize(spec_.action.size());
  clear();
  keep_state();
  evaluate();
}

void GymEnvironment::clear() {
  const MujocoScope scope(physics_.name());
  mj_resetData(&physics_.model(), &physics_.data());
  for (RewardPart& part : parts_)
    part.value = 0;
  steps_ = 0;
  running_ = false;
}

void GymEnvironment::keep_state() {
  mj_getState(&physics_.model(), &physics_.data(), kept_.data(), kKeptState);
}

void GymEnvironment::evaluate() {
  if (steps_ == 0) {
    physics_.forward();
    return;
  }
  physics_.step_plain(1);
  if (task_->reads_contact_forces()) {
    const MujocoScope scope(physics_.name());
    mj_rnePostConstraint(&physics_.model(), &physics_.data());
  }
}

void GymEnvironment::observe(std::span<std::byte> observation) {
  task_->observe(physics_, values_);
  std::memcpy(observation.data(), values_.data(), values_.size() * sizeof(double));
}

TimeStep GymEnvironment::begin(std::span<std::byte> observation) {
  keep_state();
  evaluate();
  observe(observation);
  running_ = true;
  return {};
}

TimeStep GymEnvironment::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  clear();
  random_ = Random(seed);
  task_->initialize_episode(physics_, random_);
  return begin(observation);
}

TimeStep GymEnvironment::reset_to(std::span<const double> qpos, std::span<const double> qvel,
                                  std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  if (qpos.size() != positions(physics_).size() || qvel.size() != velocities(physics_).size())
    throw std::invalid_argument("environment " + spec_.name + ": a state has "
                                + std::to_string(qpos.size()) + " positions and "
                                + std::to_string(qvel.size()) + " velocities; it needs "
                                + std::to_string(positions(physics_).size()) + " and "
                                + std::to_string(velocities(physics_).size()));
  clear();
  random_ = Random(0);
  std::copy(qpos.begin(), qpos.end(), physics_.data().qpos);
  std::copy(qvel.begin(), qvel.end(), physics_.data().qvel);
  return begin(observation);
}

TimeStep GymEnvironment::step(std::span<const double> action, std::span<std::byte> observation) {
  check_step(spec_, running_, action, observation, action_);
  running_ = false; // until this step has succeeded
  const double before = task_->position(physics_);
  std::copy(action_.begin(), action_.end(), physics_.data().ctrl);
  ++steps_;
  if (frame_skip_ > 1)
    physics_.step_plain(frame_skip_ - 1);
  keep_state();
  evaluate();
  const bool healthy = task_->healthy(physics_);
  TimeStep result{StepType::mid, 0, 1};
  result.reward = task_->reward(physics_,
                                {.action = action_,
                                 .velocity = (task_->position(physics_) - before) / step_seconds_,
                                 .healthy = healthy},
                                parts_);
  observe(observation);
  const bool terminated = !healthy && task_->terminates();
  result.discount = terminated ? 0 : 1; // at the time limit it is 1
  running_ = !terminated && (spec_.episode_steps == 0 || steps_ < spec_.episode_steps);
  if (!running_)
    result.step_type = StepType::last;
  return result;
}

void GymEnvironment::save_state(std::vector<std::byte>& out) const {
  save_value(out, random_);
  save_value(out, steps_);
  save_value(out, static_cast<std::uint8_t>(running_));
  for (const RewardPart& part : parts_)
    save_value(out, part.value);
  save_array<double>(out, kept_);
  physics_.save_state(out);
}

std::span<const std::byte> GymEnvironment::load_state(std::span<const std::byte> in) {
  running_ = false;
  Random random;
  std::int64_t steps = 0;
  std::uint8_t running = 0;
  std::vector<RewardPart> parts = parts_;
  std::vector<double> kept(kept_.size());
  load_value(in, random, "random stream");
  load_value(in, steps, "step counter");
  load_value(in, running, "episode flag");
  for (RewardPart& part : parts)
    load_value(in, part.value, "reward");
  load_array<double>(in, kept, "the simulation before its last step");
  in = physics_.load_state(in); // for the private model arrays; the state is computed below
  clear();
  mj_setState(&physics_.model(), &physics_.data(), kept.data(), kKeptState);
  random_ = random;
  steps_ = steps;
  parts_ = parts;
  kept_ = kept;
  evaluate();
  running_ = running != 0;
  return in;
}

} // namespace troupe::env::gym
