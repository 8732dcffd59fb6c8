#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::env {

/// The ray caster (env/caster/), on the processor or on a CUDA device, or OpenGL.
/// `automatic` is kAutomaticRenderer of render/renderer.hpp.
enum class RendererKind : std::uint8_t { automatic, caster, caster_cuda, opengl };

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

} // namespace troupe::env
