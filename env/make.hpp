#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/environment.hpp"

namespace troupe::env {

/// Who draws: the ray caster (env/caster/: the processor alone, no OpenGL), or OpenGL.
/// `automatic` is kAutomaticRenderer of render/renderer.hpp.
enum class RendererKind : std::uint8_t { automatic, caster, opengl };

/// Which OpenGL draws: `automatic` tries EGL (a GPU, else software), then OSMesa.
enum class GlBackend : std::uint8_t { automatic, egl, osmesa };

struct PixelOptions {
  int height = 84; // pixels, 1 to 4096
  int width = 84;
  std::string camera = "0"; // a name of the model's cameras, or its number; -1: the free camera
  bool grey = false;        // one channel of luma instead of three of RGB
  bool effects = true;      // dm_control's shadows, reflections and multisampling
  bool fog = false; // the model's fog (visual/map, visual/rgba), which dm_control leaves out
  RendererKind renderer = RendererKind::automatic;
  GlBackend gl = GlBackend::automatic; // where OpenGL draws
  std::vector<std::string>
      cameras{}; // several instead of `camera`: their channels one after another
};

/// Running mean and variance of the observations (wrappers/normalize.hpp).
struct NormalizationConfig {
  std::string mode = "off"; // "frozen": as in the file; "running": updated by each environment
  std::string file{};       // of write_statistics(); "running" may go without
  double clip = 10;         // normalised numbers are clipped to ±clip
};

/// What differs from episode to episode (wrappers/randomize.hpp); 0: nothing.
struct RandomizationConfig {
  double colours = 0;
  double lights = 0;
  double camera = 0; // metres
  double field_of_view = 0;
  double masses = 0;
  double friction = 0;
};

struct EnvironmentConfig {
  std::string task{};                   // one of environment_names(), e.g. "cartpole_balance"
  std::optional<PixelOptions> pixels{}; // pixels instead of states
  int frame_stack = 1;   // last frames in one observation, oldest first (the channels of pixels)
  int action_repeat = 1; // rewards are added up over the repeated steps
  std::string models{};  // folder of the suite's XML files; empty: where the build found them
  std::string plugin{};  // shared library that has the task (plugin/plugin.hpp); empty: none
  std::vector<std::string> options{}; // "key=value" of a Gym, remote or own environment
  std::int64_t time_limit = 0;        // steps before action repeat; 0: the task's own
  double action_clip = 1;             // actions are clipped to ± this part of their range
  bool action_rescale = false;        // [-1, 1] then means that part
  double action_noise = 0;            // standard deviation, in halves of the range
  double reward_scale = 1;
  double reward_clip = 0;                  // to ± this; 0: off
  std::vector<std::string> observations{}; // a dictionary of these (wrappers/dictionary.hpp)
  NormalizationConfig normalization{};
  RandomizationConfig randomization{};
  std::string episode_log{}; // a line of JSON per episode goes there; empty: none
};

/// The task with its wrappers, innermost first: task -> time limit -> episode log -> randomisation
/// -> actions in [-1, 1] -> action clip, rescaled -> action noise -> action repeat -> reward scale
/// -> reward clip -> pixels, dictionary or flat states -> normalisation -> frame stack. Those that
/// the configuration does not ask for are not there.
///
/// One observation array: "pixels" uint8 [stack*cameras*channels, height, width] or "state" float32
/// [stack*n]; several only when `observations` names them. An environment of one's own whose only
/// array is a picture (uint8 [channels, height, width]) keeps it. Throws std::invalid_argument
/// (unknown task with the nearest names, sizes out of range, no such camera with the list of
/// cameras) or std::runtime_error (missing model file, no OpenGL where it draws, a remote peer that
/// is not there).
std::unique_ptr<Environment> make_environment(const EnvironmentConfig& config);

/// The environment of the configuration without any wrapper: its task, plugin, options and models.
std::unique_ptr<Environment> make_bare(const EnvironmentConfig& config);

/// The bare suite task: float64 observations by name in dm_control's order, the task's own bounds.
std::unique_ptr<Environment> make_task(const std::string& task, const std::string& models = {});

/// Names of the control suite's tasks, sorted.
std::vector<std::string> task_names();

/// Names of all that `task` may be without a plug-in, sorted: the suite's, Gym's, those linked into
/// this program. ("remote", an environment at options endpoint=…, is not among them.)
std::vector<std::string> environment_names();

/// Whether `task` may be that: also "remote", and a suite task with another number in its name.
bool is_environment(const std::string& task);

/// "3.17.0": the MuJoCo in this process.
std::string mujoco_version();

/// Up to `count` of `names` nearest to `name` by edit distance, for messages: "did you mean …".
std::vector<std::string> nearest_names(const std::string& name,
                                       const std::vector<std::string>& names,
                                       std::size_t count = 3);

} // namespace troupe::env
