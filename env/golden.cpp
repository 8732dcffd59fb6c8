#include "env/golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "env/npz.hpp"
#include "env/render/renderer.hpp"
#include "env/suite/rewards.hpp"
#include "env/suite/suite_environment.hpp"

namespace troupe::env {

namespace {

using Arrays = std::map<std::string, NpyArray>;

/// A recording's array as rows of doubles.
struct Table {
  std::vector<double> values;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<const double> row(std::size_t i) const {
    return std::span(values).subspan(i * columns, columns);
  }
};

Table table(const Arrays& arrays, const std::string& name, std::size_t columns,
            const std::string& source) {
  const auto found = arrays.find(name);
  if (found == arrays.end())
    throw std::runtime_error(source + " has no array '" + name + "'");
  Table t{found->second.as_doubles(), 0, columns};
  t.rows = columns == 0 ? 0 : t.values.size() / columns;
  if (columns == 0 ? !t.values.empty() : t.values.size() % columns != 0)
    throw std::runtime_error(source + ": array '" + name + "' has "
                             + std::to_string(t.values.size()) + " numbers, no multiple of the "
                             + std::to_string(columns) + " of our model");
  return t;
}

/// The largest relative error; a number that is not finite on one side only is infinitely wrong.
double relative_error(std::span<const double> ours, std::span<const double> theirs) {
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double error = std::abs(ours[i] - theirs[i]) / std::max(1.0, std::abs(theirs[i]));
    worst = std::max(worst, std::isnan(error) ? kInfinity : error);
  }
  return worst;
}

/// One task's recording and our simulation of it.
class Replay {
public:
  Replay(const std::string& folder, const std::string& task, const std::string& models)
      : source_((std::filesystem::path(folder) / (task + ".npz")).string()),
        arrays_(read_npz(source_)),
        environment_(find_task(task), models),
        physics_(*environment_.physics()) {
    for (const ArraySpec& array : environment_.spec().observations)
      observation_.resize(observation_.size() + array.elements());
  }

  Physics& physics() const { return physics_; }
  std::span<const double> observation() const { return observation_; }

  /// The state after reset, as recorded.
  void begin() {
    physics_.share_arrays();
    physics_.reset();
    set_model("model/");
    mjData& data = physics_.data();
    const mjModel& model = physics_.model();
    set(data.qpos, model.nq, "init/qpos");
    set(data.qvel, model.nv, "init/qvel");
    set(data.act, model.na, "init/act");
    set(data.ctrl, model.nu, "init/ctrl");
    set(data.mocap_pos, 3 * model.nmocap, "init/mocap_pos");
    set(data.mocap_quat, 4 * model.nmocap, "init/mocap_quat");
    set(&data.time, 1, "init/time");
    physics_.forward_without_actuation();
    set(data.qacc_warmstart, model.nv, "init/qacc_warmstart"); // forward changed it
    observe();
  }

  void step(std::span<const double> action) {
    environment_.task().before_step(physics_, action);
    physics_.step(environment_.physics_steps());
    environment_.task().after_step(physics_);
    observe();
  }

  double reward() const { return environment_.task().reward(physics_); }
  Table actions() const { return get("actions", static_cast<std::size_t>(physics_.model().nu)); }
  Table get(const std::string& name, std::size_t columns) const {
    return table(arrays_, name, columns, source_);
  }
  void begin_probes() {
    const bool own = std::any_of(arrays_.begin(), arrays_.end(), [](const auto& entry) {
      return entry.first.starts_with("probe_model/");
    });
    if (own) {
      physics_.share_arrays();
      set_model("probe_model/");
    }
  }
  void probe(std::span<const double> qpos, std::span<const double> qvel,
             std::span<const double> ctrl) {
    mjData& data = physics_.data();
    std::copy(qpos.begin(), qpos.end(), data.qpos);
    std::copy(qvel.begin(), qvel.end(), data.qvel);
    std::copy(ctrl.begin(), ctrl.end(), data.ctrl);
    std::fill_n(data.qacc_warmstart, physics_.model().nv, 0.0);
    physics_.forward();
    observe();
  }

private:
  void observe() { environment_.task().observe(physics_, observation_); }

  template <typename Count>
  void set(double* values, Count count, const std::string& name) {
    const auto found = arrays_.find(name);
    if (found == arrays_.end())
      return;
    const std::vector<double> recorded = found->second.as_doubles();
    if (recorded.size() != static_cast<std::size_t>(count))
      throw std::runtime_error(source_ + ": array '" + name + "' has "
                               + std::to_string(recorded.size()) + " numbers; our model needs "
                               + std::to_string(count));
    std::copy(recorded.begin(), recorded.end(), values);
  }

  void set_model(const std::string& prefix) {
    for (const auto& [name, array] : arrays_) {
      if (!name.starts_with(prefix))
        continue;
      const std::string field = name.substr(prefix.size());
      if (array.type == "<f4") {
        const auto own = physics_.own_float_array(field);
        std::vector<double> wide(own.size());
        set(wide.data(), wide.size(), name);
        std::transform(wide.begin(), wide.end(), own.begin(),
                       [](double value) { return static_cast<float>(value); });
      } else {
        const auto own = physics_.own_array(field);
        set(own.data(), own.size(), name);
      }
    }
  }

  std::string source_;
  Arrays arrays_;
  SuiteEnvironment environment_;
  Physics& physics_;
  std::vector<double> observation_;
};

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

void judge(GoldenReport& report, const std::string& what, double error, double limit) {
  if (!(error <= limit))
    report.failures.push_back(what + " differ by " + text(error) + ", more than " + text(limit));
}

/// Frames by control step.
struct Frames {
  std::map<int, std::size_t> index; // control step -> number in the array
  std::vector<std::byte> bytes;
  int height = 0;
  int width = 0;
  int camera = 0;

  std::size_t frame_bytes() const { return static_cast<std::size_t>(height * width * 3); }
};

int small_number(double value, const std::string& source) {
  if (!(value >= 0 && value <= 1e6 && value == std::floor(value)))
    throw std::runtime_error(source + ": " + text(value) + " is no step and no camera");
  return static_cast<int>(value);
}

Frames read_frames(const std::string& folder, const std::string& task) {
  const std::string source = (std::filesystem::path(folder) / ("frames_" + task + ".npz")).string();
  Frames frames;
  if (!std::filesystem::exists(source))
    return frames;
  Arrays arrays = read_npz(source);
  const Table steps = table(arrays, "steps", 1, source);
  const Table camera = table(arrays, "camera", 1, source);
  NpyArray& pixels = arrays["frames"];
  const auto& shape = pixels.shape;
  if (pixels.type != "|u1" || shape.size() != 4 || shape[3] != 3 || camera.rows != 1
      || shape[0] != static_cast<std::int64_t>(steps.rows) || shape[1] < 1 || shape[1] > 4096
      || shape[2] < 1 || shape[2] > 4096)
    throw std::runtime_error(source
                             + ": frames must be uint8 [n, height, width, 3] with n steps"
                               " and one camera");
  frames.height = static_cast<int>(shape[1]);
  frames.width = static_cast<int>(shape[2]);
  frames.camera = small_number(camera.values[0], source);
  for (std::size_t i = 0; i < steps.rows; ++i)
    frames.index[small_number(steps.values[i], source)] = i;
  frames.bytes = std::move(pixels.bytes);
  return frames;
}

/// Draws and compares the frames of a replay as it goes.
class FrameCheck {
public:
  FrameCheck(Physics& physics, Frames frames, GlBackend gl)
      : frames_(std::move(frames)),
        renderer_(physics,
                  {.height = frames_.height,
                   .width = frames_.width,
                   .camera = std::to_string(frames_.camera),
                   .gl = gl},
                  PixelLayout::channels_last),
        drawn_(renderer_.bytes()) {}

  void at(int control_step, GoldenReport& report) {
    const auto found = frames_.index.find(control_step);
    if (found == frames_.index.end())
      return;
    renderer_.draw(drawn_);
    const std::byte* recorded = frames_.bytes.data() + found->second * frames_.frame_bytes();
    double sum = 0;
    for (std::size_t i = 0; i < drawn_.size(); ++i)
      sum += std::abs(static_cast<int>(drawn_[i]) - static_cast<int>(recorded[i]));
    report.frame_error = std::max(report.frame_error, sum / static_cast<double>(drawn_.size()));
    ++report.frames;
  }

private:
  Frames frames_;
  Renderer renderer_;
  std::vector<std::uint8_t> drawn_;
};

void check_trajectory(Replay& replay, FrameCheck* frames, GoldenReport& report) {
  const std::size_t size = replay.observation().size();
  const Table first = replay.get("obs0", size);
  const Table actions = replay.actions();
  const Table observations = replay.get("obs", size);
  const Table rewards = replay.get("reward", 1);
  if (first.rows != 1 || observations.rows != actions.rows || rewards.rows != actions.rows)
    throw std::runtime_error("recording of " + report.task
                             + ": observations, rewards and actions differ in number");
  replay.begin();
  report.observation_error = relative_error(replay.observation(), first.row(0));
  if (frames != nullptr)
    frames->at(0, report);
  for (std::size_t i = 0; i < actions.rows; ++i) {
    replay.step(actions.row(i));
    const double reward = replay.reward();
    report.observation_error = std::max(report.observation_error,
                                        relative_error(replay.observation(), observations.row(i)));
    report.reward_error =
        std::max(report.reward_error, relative_error({&reward, 1}, rewards.row(i)));
    if (frames != nullptr)
      frames->at(static_cast<int>(i) + 1, report);
  }
  report.steps = static_cast<int>(actions.rows);
}

void check_probes(Replay& replay, GoldenReport& report) {
  const mjModel& model = replay.physics().model();
  const Table qpos = replay.get("probe_qpos", static_cast<std::size_t>(model.nq));
  const Table qvel = replay.get("probe_qvel", static_cast<std::size_t>(model.nv));
  const Table ctrl = replay.get("probe_ctrl", static_cast<std::size_t>(model.nu));
  const Table observations = replay.get("probe_obs", replay.observation().size());
  const Table rewards = replay.get("probe_reward", 1);
  if (qvel.rows != qpos.rows || ctrl.rows != qpos.rows || observations.rows != qpos.rows
      || rewards.rows != qpos.rows)
    throw std::runtime_error("recording of " + report.task + ": its probes differ in number");
  replay.begin_probes();
  for (std::size_t i = 0; i < qpos.rows; ++i) {
    replay.probe(qpos.row(i), qvel.row(i), ctrl.row(i));
    const double reward = replay.reward();
    report.probe_error =
        std::max({report.probe_error, relative_error(replay.observation(), observations.row(i)),
                  relative_error({&reward, 1}, rewards.row(i))});
  }
  report.probes = static_cast<int>(qpos.rows);
}

} // namespace

GoldenIndex read_golden_index(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "index.json").string();
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error(path
                             + " cannot be opened; name a folder of recordings as made by"
                               " golden/make.py");
  GoldenIndex index;
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    const std::vector<std::string> ours = task_names();
    for (const auto& entry : json.at("tasks").items())
      (std::find(ours.begin(), ours.end(), entry.key()) != ours.end() ? index.tasks
                                                                      : index.not_built)
          .push_back(entry.key());
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path + " is not an index of recordings: " + error.what());
  }
  return index;
}

GoldenReport check_golden(const std::string& folder, const std::string& task,
                          const std::string& models, std::optional<GlBackend> gl) {
  GoldenReport report;
  report.task = task;
  Replay replay(folder, task, models);
  Frames frames;
  if (gl)
    frames = read_frames(folder, task);
  std::optional<FrameCheck> drawing;
  if (gl && !frames.index.empty())
    drawing.emplace(replay.physics(), std::move(frames), *gl);
  check_trajectory(replay, drawing ? &*drawing : nullptr, report);
  check_probes(replay, report);
  judge(report, "observations", report.observation_error, kGoldenTolerance);
  judge(report, "rewards", report.reward_error, kGoldenTolerance);
  judge(report, "probes", report.probe_error, kGoldenProbeTolerance);
  judge(report, "frames (grey levels)", report.frame_error, kGoldenFrameTolerance);
  return report;
}

} // namespace troupe::env
