#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/commands/tools/render_view.hpp"

namespace troupe::experiments::commands {

/// The state to draw: `step` uniformly random actions after the reset with `seed`.
struct RenderState {
  std::uint64_t seed = 1;
  std::int64_t step = 20;
};

struct RenderedTask {
  std::string task;
  std::optional<ViewLikeness> likeness; // only if both renderers were used
};

/// The number of the first camera that follows the centre of mass, or else of the first camera.
/// dm_control's camera 0 of dog_fetch follows the ball, which may be far from the dog.
std::string following_camera(env::Environment& environment);

/// Plays `environment` up to `state`. Throws std::invalid_argument if the episode is shorter.
void play_to(env::Environment& environment, const RenderState& state);

/// Draws a contact sheet as a PNG: each of `tasks` with its name (and likeness) above its pictures.
/// Names wider than a picture are wrapped. An empty camera is replaced by following_camera().
std::vector<RenderedTask> draw_sheet(const std::vector<std::string>& tasks,
                                     const env::EnvironmentConfig& config, const RenderState& state,
                                     const ViewOptions& options, const std::filesystem::path& file);

} // namespace troupe::experiments::commands
