#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// Which OpenGL draws: `automatic` tries EGL (a GPU, else software), then OSMesa.
enum class GlBackend : std::uint8_t { automatic, egl, osmesa };

struct PixelOptions {
  int height = 84; // pixels, 1 to 4096
  int width = 84;
  std::string camera = "0"; // a name of the model's cameras, or its number; -1: the free camera
  bool grey = false;        // one channel of luma instead of three of RGB
  bool effects = true;      // dm_control's shadows, reflections and multisampling
  GlBackend gl = GlBackend::automatic;
};

struct EnvironmentConfig {
  std::string task{};                   // "<domain>_<task>", e.g. "cartpole_balance"
  std::optional<PixelOptions> pixels{}; // pixels instead of states
  int frame_stack = 1;   // last frames in one observation, oldest first (the channels of pixels)
  int action_repeat = 1; // rewards are added up over the repeated steps
  std::string models{};  // folder of the suite's XML files; empty: where the build found them
};

/// The task with its wrappers: actions in [-1, 1], one observation array: "pixels" uint8
/// [stack*channels, height, width] or "state" float32 [stack*n]. Throws std::invalid_argument
/// (unknown task with the nearest names, sizes out of range, no such camera with the list of
/// cameras) or std::runtime_error (missing model file, no OpenGL).
std::unique_ptr<Environment> make_environment(const EnvironmentConfig& config);

/// The bare task: float64 observations by name in dm_control's order, the task's own action bounds.
std::unique_ptr<Environment> make_task(const std::string& task, const std::string& models = {});

/// Names of all tasks, sorted.
std::vector<std::string> task_names();

/// "3.17.0": the MuJoCo in this process.
std::string mujoco_version();

/// Up to `count` of `names` nearest to `name` by edit distance, for messages: "did you mean …".
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names,
                                       std::size_t count = 3);

} // namespace troupe::env
