#include "experiments/commands/tools/render_sheet.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "env/plugin/rollout.hpp"
#include "env/wrappers/pixels.hpp"
#include "experiments/commands/tools/render_canvas.hpp"
#include "experiments/report/picture.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr int kGap = 6;
constexpr int kMostLines = 2; // of a label

std::string title_of(const RenderedTask& rendered) {
  if (!rendered.likeness) {
    return rendered.task;
  }
  char text[64];
  std::snprintf(text, sizeof text, "  SSIM %.3f  MAD %.2f", rendered.likeness->similarity,
                rendered.likeness->difference);
  return rendered.task + text;
}

/// The number of columns that makes the sheet approximately square.
int columns_of(std::size_t count, int cell_width, int cell_height) {
  const double cells = static_cast<double>(count) * cell_height / cell_width;
  return std::clamp(static_cast<int>(std::lround(std::sqrt(cells))), 1, static_cast<int>(count));
}

} // namespace

std::string following_camera(env::Environment& environment) {
  const env::Physics* physics = environment.physics();
  for (int i = 0; physics != nullptr && i < physics->model().ncam; ++i) {
    if (physics->model().cam_mode[i] == mjCAMLIGHT_TRACKCOM) {
      return std::to_string(i);
    }
  }
  return "0";
}

void play_to(env::Environment& environment, const RenderState& state) {
  const env::Rollout played = env::play(environment, state.seed, state.step);
  const auto taken = static_cast<std::int64_t>(played.steps.size()) - 1;
  if (taken < state.step) {
    throw std::invalid_argument("--step " + std::to_string(state.step) + ": the episode of "
                                + environment.spec().name + " with seed "
                                + std::to_string(state.seed) + " ends at step "
                                + std::to_string(taken) + "; choose an earlier one");
  }
}

std::vector<RenderedTask> draw_sheet(const std::vector<std::string>& tasks,
                                     const env::EnvironmentConfig& config, const RenderState& state,
                                     const ViewOptions& options,
                                     const std::filesystem::path& file) {
  const int cell_width = options.pixels.width * (options.both ? 3 : 1) + kGap;
  const int letters = (cell_width - kGap) / Canvas::kTextWidth;
  std::size_t longest = 0;
  for (const std::string& task : tasks) {
    longest = std::max(longest, task.size());
  }
  const int lines = static_cast<int>(longest) > letters ? kMostLines : 1;
  const int label_height = lines * Canvas::kTextHeight;
  const int cell_height = options.pixels.height + label_height + kGap;
  const int columns = columns_of(tasks.size(), cell_width, cell_height);
  const int rows = (static_cast<int>(tasks.size()) + columns - 1) / columns;
  Canvas sheet(columns * cell_width, rows * cell_height);
  std::vector<RenderedTask> all;
  for (const std::string& task : tasks) {
    env::EnvironmentConfig one = config;
    one.task = task;
    const auto environment = env::make_bare(one);
    ViewOptions view_options = options;
    if (options.pixels.camera.empty()) {
      view_options.pixels.camera = following_camera(*environment);
    }
    env::check_can_be_drawn(*environment, view_options.pixels);
    play_to(*environment, state);
    View view(*environment->physics(), view_options);
    const int number = static_cast<int>(all.size());
    const int x = number % columns * cell_width;
    const int y = number / columns * cell_height;
    const auto picture = view.draw();
    all.push_back({task, view.likeness()});
    sheet.write(x + 1, y + 1, title_of(all.back()), letters, lines);
    sheet.paste(x, y + label_height + 1, view.width(), view.height(), picture);
  }
  write_png(file, sheet.width(), sheet.height(), sheet.rgb());
  return all;
}

} // namespace troupe::experiments::commands
