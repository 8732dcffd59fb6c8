#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/make/make.hpp"
#include "env/plugin/rollout.hpp"
#include "env/suite/task_names.hpp"
#include "env/wrappers/frame_sink.hpp"
#include "env/wrappers/pixels.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/tools/render_sheet.hpp"
#include "experiments/report/picture.hpp"
#include "experiments/report/video.hpp"

namespace troupe::experiments::commands {
namespace {

bool is_video(const std::string& path) {
  return path.ends_with(".mp4") || path.ends_with(".gif");
}

constexpr double kVideoFramesPerSecond = 30;

struct RenderOptions {
  std::vector<std::string> tasks;
  env::EnvironmentConfig environment{};
  RenderState state;
  std::int64_t steps = 200; // length of the video
  int size = 0;
  std::string renderer = "AUTO";
  bool depth = false;
  bool segmentation = false;
  bool no_effects = false;
  bool all = false;
  bool json = false;
  std::string out;
  ViewOptions view{};
};

void add_likeness(Json& json, const std::optional<ViewLikeness>& likeness) {
  if (likeness) {
    json["similarity"] = likeness->similarity;
    json["mean_absolute_difference"] = likeness->difference;
  }
}

void tell(const RenderOptions& options, const std::string& task, const View& view,
          std::int64_t frames) {
  const auto& likeness = view.likeness();
  if (options.json) {
    Json json = {{"task", task},
                 {"file", options.out},
                 {"seed", options.state.seed},
                 {"step", options.state.step},
                 {"camera", options.view.pixels.camera},
                 {"height", view.height()},
                 {"width", view.width()},
                 {"frames", frames},
                 {"renderers", view.descriptions()}};
    add_likeness(json, likeness);
    print_json(json);
    return;
  }
  std::printf("%s: %d x %d pixels, %lld picture%s\n", options.out.c_str(), view.width(),
              view.height(), static_cast<long long>(frames), frames == 1 ? "" : "s");
  for (const std::string& description : view.descriptions()) {
    std::printf("  by %s\n", description.c_str());
  }
  if (likeness) {
    std::printf("  structural similarity %.4f, mean absolute difference %.3f of 255%s\n",
                likeness->similarity, likeness->difference, frames == 1 ? "" : " (last picture)");
  }
}

void render_film(const RenderOptions& options, env::Environment& environment, View& view) {
  const auto& spec = environment.spec();
  const std::int64_t every = env::steps_per_frame(spec, kVideoFramesPerSecond);
  const double rate = 1 / (static_cast<double>(every) * spec.control_timestep_seconds);
  const auto film = write_video(options.out, view.width(), view.height(),
                                rate < 1000 ? rate : kVideoFramesPerSecond);
  std::vector<std::byte> observation(spec.observation_bytes());
  film->add(view.draw());
  for (std::int64_t i = 1; i <= options.steps; ++i) {
    const auto action =
        env::action_for(spec, options.state.seed, options.state.step + i, env::Acting::random);
    const env::TimeStep step = environment.step(action, observation);
    if (i % every == 0) {
      film->add(view.draw());
    }
    if (step.step_type == env::StepType::last) {
      break;
    }
  }
  film->finish();
  tell(options, options.tasks.front(), view, film->frames());
}

void render_one(RenderOptions options) {
  env::EnvironmentConfig config = options.environment;
  config.task = options.tasks.front();
  const auto environment = env::make_bare(config);
  if (options.view.pixels.camera.empty()) {
    options.view.pixels.camera = following_camera(*environment);
  }
  env::check_can_be_drawn(*environment, options.view.pixels);
  play_to(*environment, options.state);
  View view(*environment->physics(), options.view);
  if (is_video(options.out)) {
    render_film(options, *environment, view);
    return;
  }
  write_png(options.out, view.width(), view.height(), view.draw());
  tell(options, config.task, view, 1);
}

void render_sheet(const RenderOptions& options) {
  const auto rendered =
      draw_sheet(options.tasks, options.environment, options.state, options.view, options.out);
  for (const RenderedTask& one : rendered) {
    if (options.json) {
      Json json = {{"task", one.task}, {"file", options.out}};
      add_likeness(json, one.likeness);
      print_json(json);
    } else if (one.likeness) {
      std::printf("%-24s structural similarity %.4f  mean absolute difference %.3f\n",
                  one.task.c_str(), one.likeness->similarity, one.likeness->difference);
    }
  }
  if (!options.json) {
    std::printf("%s: %zu tasks\n", options.out.c_str(), rendered.size());
  }
}

/// Converts flags to view options. Rejects contradictory flags.
void settle(RenderOptions& options) {
  env::PixelOptions& pixels = options.view.pixels;
  if (options.all && !options.tasks.empty()) {
    throw std::invalid_argument("--all draws every task of the suite; omit the names");
  }
  if (options.all) {
    options.tasks = env::task_names();
  }
  if (options.tasks.empty()) {
    throw std::invalid_argument("nothing to draw; name an environment (`troupe list "
                                "environments`), or give --all for a contact sheet of the suite");
  }
  const bool sheet = options.tasks.size() > 1;
  if (options.out.empty()) {
    options.out = (sheet ? "sheet" : options.tasks.front()) + std::string(".png");
  }
  if (!options.out.ends_with(".png") && !is_video(options.out)) {
    throw std::invalid_argument("--out " + options.out + ": must end in .png, .mp4 or .gif");
  }
  if (sheet && is_video(options.out)) {
    throw std::invalid_argument(
        "--out " + options.out
        + ": a contact sheet is a picture; use .png, or name one environment for a video");
  }
  if (options.size > 0) {
    pixels.height = pixels.width = options.size;
  } else if (pixels.height == 0) {
    pixels.height = pixels.width = sheet ? 120 : 480;
  }
  pixels.effects = !options.no_effects;
  options.view.both = options.renderer == "BOTH";
  pixels.renderer = options.renderer == "CASTER"   ? env::RendererKind::caster
                    : options.renderer == "OPENGL" ? env::RendererKind::opengl
                                                   : env::RendererKind::automatic;
  options.view.shows = options.depth          ? Shows::depth
                       : options.segmentation ? Shows::segmentation
                                              : Shows::colour;
}

void add_view_flags(CLI::App& command, RenderOptions& options) {
  env::PixelOptions& pixels = options.view.pixels;
  pixels.height = pixels.width = 0; // not given
  pixels.camera.clear();
  command.add_option("--camera", pixels.camera,
                     "name or number of the camera; -1: the free camera; default: the first that "
                     "follows the centre of mass, or else 0");
  auto* size =
      command
          .add_option("--size", options.size, "height and width, in pixels; 480, or 120 on a sheet")
          ->check(CLI::Range(8, 4096));
  auto* height = command.add_option("--height", pixels.height, "in pixels")
                     ->check(CLI::Range(8, 4096))
                     ->excludes(size);
  auto* width = command.add_option("--width", pixels.width, "in pixels")
                    ->check(CLI::Range(8, 4096))
                    ->needs(height);
  height->needs(width);
  command
      .add_option("--renderer", options.renderer,
                  "as environment.pixels.renderer, or BOTH: pictures by OpenGL and the ray caster "
                  "and their difference, side by side")
      ->transform(CLI::IsMember({"AUTO", "CASTER", "OPENGL", "BOTH"}, CLI::ignore_case))
      ->capture_default_str();
  command.add_option("--gain", options.view.gain, "factor by which the difference is amplified")
      ->check(CLI::Range(1, 255))
      ->capture_default_str();
  auto* depth = command.add_flag("--depth", options.depth, "depth: white is near, black is far");
  command.add_flag("--segmentation", options.segmentation, "segmentation: one colour per object")
      ->excludes(depth);
  command.add_flag("--grey", pixels.grey, "grey instead of colours");
  command.add_flag("--fog", pixels.fog, "the model's fog, which dm_control leaves out");
  command.add_flag("--no-effects", options.no_effects,
                   "without shadows, reflections and anti-aliasing");
}

} // namespace

void add_render(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("render", "Renders environments as a picture, a video or a contact sheet");
  command->footer("Example: troupe render walker_walk --step 50 --out walker.png\n"
                  "         troupe render cheetah_run --camera back --out cheetah.mp4\n"
                  "         troupe render dog_run --renderer both --size 240\n"
                  "         troupe render --all --renderer both --out sheet.png\n"
                  "Actions are uniformly random; the same seed gives the same pictures.");
  auto options = std::make_shared<RenderOptions>();
  command->add_option("TASKS", options->tasks,
                      "`troupe list environments` names them; several make a contact sheet");
  command->add_flag("--all", options->all, "a contact sheet of the control suite");
  command->add_option("--out", options->out,
                      "output file, .png, .mp4 or .gif; default: <environment>.png");
  command->add_option("--seed", options->state.seed, "seed of the episode")->capture_default_str();
  command->add_option("--step", options->state.step, "step of the episode to draw (first)")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "length of a video in environment steps")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_view_flags(*command, *options);
  command->add_option("--plugin", options->environment.plugin, "shared library with the task");
  command
      ->add_option("--option", options->environment.options,
                   "key=value option of the task; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--models", options->environment.models, "folder of the suite's XML files");
  command->add_flag("--json", options->json, "one JSON object per environment and line");
  command->callback([options] {
    settle(*options);
    if (options->tasks.size() > 1) {
      render_sheet(*options);
    } else {
      render_one(*options);
    }
  });
}

} // namespace troupe::experiments::commands
