#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/commands/tools/render_view.hpp"

namespace troupe::experiments::commands {

/// The state that is drawn: `step` steps of uniformly random actions after the reset with `seed`.
struct RenderState {
  std::uint64_t seed = 1;
  std::int64_t step = 20;
};

struct RenderedTask {
  std::string task;
  std::optional<ViewLikeness> likeness; // when both renderers drew
};

/// Plays `environment` to `state`. Throws std::invalid_argument when its episode is shorter.
void play_to(env::Environment& environment, const RenderState& state);

/// A contact sheet: each of `tasks` with its name (and likeness) above its picture or pictures, as
/// a PNG.
std::vector<RenderedTask> draw_sheet(const std::vector<std::string>& tasks,
                                     const env::EnvironmentConfig& config, const RenderState& state,
                                     const ViewOptions& options, const std::filesystem::path& file);

} // namespace troupe::experiments::commands
