#include "env/golden/golden.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "env/golden/golden_frames.hpp"
#include "env/golden/golden_index.hpp"
#include "env/golden/golden_replay.hpp"
#include "env/golden/gym_golden.hpp"
#include "env/render/likeness.hpp"
#include "env/render/opengl_renderer.hpp"
#include "env/suite/rewards.hpp"

namespace troupe::env {

namespace {

/// Draws and compares the frames during a replay.
class FrameCheck {
public:
  FrameCheck(Physics& physics, GoldenFrames frames, GlBackend gl)
      : frames_(std::move(frames)),
        renderer_(physics,
                  {.height = frames_.height,
                   .width = frames_.width,
                   .camera = std::to_string(frames_.camera),
                   .gl = gl},
                  PixelLayout::channels_last),
        drawn_(renderer_.bytes()) {}

  void at(int control_step, GoldenReport& report) {
    const auto recorded = frames_.at(control_step);
    if (recorded.empty())
      return;
    renderer_.draw(drawn_);
    report.frame_error = std::max(report.frame_error, mean_absolute_difference(drawn_, recorded));
    ++report.frames;
  }

private:
  GoldenFrames frames_;
  OpenglRenderer renderer_;
  std::vector<std::uint8_t> drawn_;
};

void check_trajectory(GoldenReplay& replay, FrameCheck* frames, GoldenReport& report) {
  const std::size_t size = replay.observation().size();
  const RecordedTable first = replay.get("obs0", size);
  const RecordedTable actions = replay.get("actions", replay.spec().action.size());
  const RecordedTable observations = replay.get("obs", size);
  const RecordedTable rewards = replay.get("reward", 1);
  const RecordedTable discounts = replay.get("discount", 1);
  const RecordedTable step_types = replay.get("step_type", 1);
  for (const RecordedTable* other : {&observations, &rewards, &discounts, &step_types})
    if (first.rows != 1 || other->rows != actions.rows)
      throw std::runtime_error("recording of " + report.task
                               + ": observations, rewards and actions differ in number");
  replay.begin();
  report.observation_error = relative_error(replay.observation(), first.row(0));
  if (frames != nullptr)
    frames->at(0, report);
  for (std::size_t i = 0; i < actions.rows; ++i) {
    const TimeStep step = replay.step(actions.row(i));
    report.observation_error = std::max(report.observation_error,
                                        relative_error(replay.observation(), observations.row(i)));
    report.reward_error =
        std::max(report.reward_error, relative_error({&step.reward, 1}, rewards.row(i)));
    report.discount_error =
        std::max(report.discount_error, relative_error({&step.discount, 1}, discounts.row(i)));
    if (static_cast<double>(step.step_type) != step_types.values[i])
      ++report.other_step_types;
    if (frames != nullptr)
      frames->at(static_cast<int>(i) + 1, report);
  }
  report.steps = static_cast<int>(actions.rows);
}

void check_probes(GoldenReplay& replay, GoldenReport& report) {
  const mjModel& model = replay.physics().model();
  const RecordedTable qpos = replay.get("probe_qpos", static_cast<std::size_t>(model.nq));
  const RecordedTable qvel = replay.get("probe_qvel", static_cast<std::size_t>(model.nv));
  const RecordedTable ctrl = replay.get("probe_ctrl", static_cast<std::size_t>(model.nu));
  const RecordedTable observations = replay.get("probe_obs", replay.observation().size());
  const RecordedTable rewards = replay.get("probe_reward", 1);
  for (const RecordedTable* other : {&qvel, &ctrl, &observations, &rewards})
    if (other->rows != qpos.rows)
      throw std::runtime_error("recording of " + report.task + ": its probes differ in number");
  replay.begin_probes();
  for (std::size_t i = 0; i < qpos.rows; ++i) {
    const double reward = replay.probe(qpos.row(i), qvel.row(i), ctrl.row(i), observations.row(i));
    report.probe_error =
        std::max({report.probe_error, relative_error(replay.observation(), observations.row(i)),
                  relative_error({&reward, 1}, rewards.row(i))});
  }
  report.probes = static_cast<int>(qpos.rows);
}

/// Compares the task's entry in the index with our spec.
void check_spec(const nlohmann::json& entry, const EnvironmentSpec& spec, GoldenReport& report) {
  const auto judge_equal = [&](const char* what, const auto& ours, const auto& theirs) {
    if (ours != theirs)
      report.failures.push_back(std::string(what) + " differ: ours " + nlohmann::json(ours).dump()
                                + ", dm_control's " + nlohmann::json(theirs).dump());
  };
  const auto& limit = entry.at("episode_steps");
  judge_equal("episode limits", spec.episode_steps,
              limit.is_null() ? 0 : limit.get<std::int64_t>());
  const double seconds = entry.at("control_timestep").get<double>();
  if (std::abs(spec.control_timestep_seconds - seconds) > kGoldenTolerance * seconds)
    judge_equal("control time steps", spec.control_timestep_seconds, seconds);
  const auto& action = entry.at("action_spec");
  const auto bounds = [&](const char* which) { // dm_control writes mjMAXVAL for "no bound"
    auto values = action.at(which).get<std::vector<double>>();
    for (double& value : values)
      if (std::abs(value) == mjMAXVAL)
        value = std::copysign(kInfinity, value);
    return values;
  };
  judge_equal("lower action bounds", spec.action.minimum, bounds("minimum"));
  judge_equal("upper action bounds", spec.action.maximum, bounds("maximum"));
  using Named = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  Named ours;
  Named theirs;
  for (const ArraySpec& array : spec.observations)
    ours.emplace_back(array.name, array.shape);
  for (const auto& array : entry.at("observation"))
    theirs.emplace_back(array.at("key"), array.at("shape").get<std::vector<std::int64_t>>());
  judge_equal("observations", ours, theirs);
}

} // namespace

std::string short_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

double relative_error(std::span<const double> ours, std::span<const double> theirs) {
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double error = std::abs(ours[i] - theirs[i]) / std::max(1.0, std::abs(theirs[i]));
    worst = std::max(worst, std::isnan(error) ? kInfinity : error);
  }
  return worst;
}

void judge(GoldenReport& report, const std::string& what, double error, double limit) {
  if (!(error <= limit))
    report.failures.push_back(what + " differ by " + short_text(error) + ", more than "
                              + short_text(limit));
}

GoldenIndex read_golden_index(const std::string& folder) {
  const nlohmann::json entries = golden_entries(folder);
  GoldenIndex index;
  const std::vector<std::string> ours = task_names();
  for (const auto& entry : entries.items())
    (is_gym_recording(entry.key()) || std::find(ours.begin(), ours.end(), entry.key()) != ours.end()
         ? index.tasks
         : index.not_built)
        .push_back(entry.key());
  return index;
}

GoldenReport check_golden(const std::string& folder, const std::string& task,
                          const std::string& models, std::optional<GlBackend> gl) {
  if (is_gym_recording(task))
    return check_gym_golden(folder, task, models);
  GoldenReport report;
  report.task = task;
  GoldenReplay replay(folder, task, models);
  GoldenFrames frames;
  if (gl)
    frames = read_golden_frames(folder, task);
  std::optional<FrameCheck> drawing;
  if (gl && !frames.index.empty())
    drawing.emplace(replay.physics(), std::move(frames), *gl);
  check_trajectory(replay, drawing ? &*drawing : nullptr, report);
  check_probes(replay, report);
  judge(report, "observations", report.observation_error, kGoldenTolerance);
  judge(report, "rewards", report.reward_error, kGoldenTolerance);
  judge(report, "discounts", report.discount_error, kGoldenTolerance);
  if (report.other_step_types > 0)
    report.failures.push_back("step types differ in " + std::to_string(report.other_step_types)
                              + " of " + std::to_string(report.steps) + " steps");
  if (std::filesystem::exists(golden_index_path(folder))) // single recordings have none
    read_golden_entry(folder, task, [&](const nlohmann::json& entry) {
      check_spec(entry, replay.spec(), report);
    });
  judge(report, "probes", report.probe_error, kGoldenProbeTolerance);
  judge(report, "frames (grey levels)", report.frame_error, kGoldenFrameTolerance);
  return report;
}

} // namespace troupe::env
