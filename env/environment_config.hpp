#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::env {

/// How pictures are drawn: by the ray caster (env/caster/), on the CPU or on a CUDA device, or by
/// OpenGL. `automatic` is kAutomaticRenderer of render/renderer.hpp.
enum class RendererKind : std::uint8_t { automatic, caster, caster_cuda, opengl };

/// The OpenGL implementation. `automatic` tries EGL (a GPU, else software), then OSMesa.
enum class GlBackend : std::uint8_t { automatic, egl, osmesa };

struct PixelOptions {
  int height = 84; // pixels, 1 to 4096
  int width = 84;
  std::string camera = "0"; // a camera's name or number in the model; -1: the free camera
  bool grey = false;        // one channel of luma instead of three of RGB
  bool effects = true;      // dm_control's shadows, reflections and multisampling
  bool fog = false; // the model's fog (visual/map, visual/rgba), which dm_control does not draw
  RendererKind renderer = RendererKind::automatic;
  GlBackend gl = GlBackend::automatic; // for OpenGL
  std::vector<std::string>
      cameras{}; // used instead of `camera`: several, their channels concatenated
};

/// Running mean and variance of the observations (wrappers/normalize.hpp).
struct NormalizationConfig {
  std::string mode = "off"; // "frozen": read from the file; "running": updated by each environment
  std::string file{};       // written by write_statistics(); optional for "running"
  double clip = 10;         // normalised numbers are clipped to ±clip
};

/// What varies between episodes (wrappers/randomize.hpp); 0: nothing.
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
  int frame_stack = 1;   // frames per observation, oldest first (along the channels of pixels)
  int action_repeat = 1; // rewards of the repeated steps are added up
  std::string models{};  // folder of the suite's XML files; empty: where the build found them
  std::string plugin{};  // shared library with the task (plugin/plugin.hpp); empty: none
  std::vector<std::string> options{}; // "key=value" of a Gym, remote or own environment
  std::int64_t time_limit = 0;        // steps before action repeat; 0: the task's own
  double action_clip = 1;             // actions are clipped to ± this fraction of their range
  bool action_rescale = false;        // [-1, 1] is then mapped to that fraction
  double action_noise = 0;            // standard deviation, in halves of the action's range
  double reward_scale = 1;
  double reward_clip = 0;                  // rewards are clipped to ± this; 0: off
  std::vector<std::string> observations{}; // names of a dictionary's arrays
                                           // (wrappers/dictionary.hpp)
  NormalizationConfig normalization{};
  RandomizationConfig randomization{};
  std::string episode_log{}; // file that receives a line of JSON per episode; empty: none
};

} // namespace troupe::env
