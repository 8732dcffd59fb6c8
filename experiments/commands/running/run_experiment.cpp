#include "experiments/commands/running/run_experiment.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "env/make/make.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/actor_launcher.hpp"
#include "experiments/commands/running/deployment.hpp"
#include "experiments/commands/running/evaluate_run.hpp"
#include "experiments/commands/running/signals.hpp"
#include "experiments/commands/running/stored_recording.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/config/plan_workload.hpp"
#include "experiments/config/settings.hpp"
#include "experiments/report/curve.hpp"
#include "experiments/report/recorder.hpp"
#include "experiments/report/summary.hpp"
#include "experiments/report/video.hpp"
#include "experiments/run_folder/head_file.hpp"
#include "experiments/run_folder/origin.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::experiments::commands {
namespace {

/// Writes head.json while the head serves; tries again if the disk is full.
struct ServedHead {
  std::unique_ptr<HeadFile> file;
  std::string problem;

  void write(Recorder& recorder) {
    std::string now;
    try {
      if (file) {
        file->write();
      }
    } catch (const std::exception& failure) {
      now = std::string(failure.what()) + "; until it is written, no command finds this run";
    }
    if (!now.empty() && now != problem) {
      recorder.log("warning", now);
    }
    problem = std::move(now);
  }
};

/// Makes a video of the trained agent. If this fails, the run goes on without the video and logs
/// one line.
std::filesystem::path make_video(const Experiment& experiment, const RunFolder& folder,
                                 const actors::RunResult& result, Recorder& recorder,
                                 const std::atomic<bool>& stop) {
  if (is_on_data(experiment) || !experiment.evaluation().video() || result.interrupted
      || result.checkpoint.empty() || stop) {
    return {};
  }
  const auto& progress = result.progress;
  const auto number = plays(experiment) ? progress.environment_steps : progress.updates;
  const auto path = [&](const char* ending) {
    return folder.path() / "videos" / (std::to_string(number) + ending);
  };
  const EvaluateOptions options{.episodes = 1,
                                .video = path(".mp4"),
                                .preview = path(".gif"),
                                .picture = path(".png"),
                                .stop = &stop};
  try {
    recorder.log("info", "drawing the video");
    if (evaluate_checkpoint(experiment, result.checkpoint, options).empty()) {
      return {}; // interrupted
    }
    const VideoInfo preview = read_video(options.preview);
    recorder.picture("evaluation/video", number, options.preview, preview.width, preview.height);
    recorder.picture("evaluation/picture", number, options.picture, options.video_size,
                     options.video_size);
    return options.video;
  } catch (const std::exception& failure) {
    recorder.log("warning", std::string("no video: ") + failure.what());
    return {};
  }
}

void write_report(const Experiment& experiment, const RunFolder& folder, const Summary& summary,
                  const std::filesystem::path& video) {
  const std::string curve = run_curve(experiment, folder.path());
  write_text(folder.path() / "curve.svg", curve);
  Summary told = summary;
  if (const auto origin = read_origin(folder.path())) {
    told.emplace_back("machine", origin->processor + ", " + std::to_string(origin->cores)
                                     + " threads, Troupe " + origin->version);
    told.emplace_back("command", origin->command);
    if (!origin->commit.empty()) {
      told.emplace_back("git", origin->commit_text());
    }
  }
  write_text(folder.path() / "report.html", report_html(experiment, told, curve, video));
}

HeadPlace head_place(const actors::Deployment& deployment, const RunOptions& options,
                     std::uint16_t port) {
  return {.host = host_name(),
          .address = reachable_address(options.head_address.empty() ? deployment.listen
                                                                    : options.head_address),
          .port = options.head_port != 0 ? options.head_port : port,
          .process = ::getpid(),
          .keys = deployment.keys != nullptr,
          .started = log_time(std::chrono::system_clock::now())};
}

void print_summary(const Summary& summary, const Finished& finished, bool json) {
  if (!json) {
    std::printf("%s", summary_text(summary).c_str());
    std::fflush(stdout);
    return;
  }
  const actors::Progress& p = finished.result.progress;
  Json out = {{"run", finished.folder.string()},
              {"interrupted", finished.result.interrupted},
              {"error", finished.result.error},
              {"returns", finished.result.evaluation.returns},
              {"metrics", finished.result.evaluation.metrics},
              {"environment_steps", p.environment_steps},
              {"agent_steps", p.agent_steps},
              {"updates", p.updates},
              {"failed_copies", p.failed_copies},
              {"inserts", p.inserts},
              {"samples", p.samples},
              {"frames", p.frames},
              {"training_seconds", p.training_seconds},
              {"seconds", p.seconds},
              {"checkpoint", finished.result.checkpoint.string()},
              {"video", finished.video.string()}};
  print_json(out);
}

template <typename... Values>
std::function<void(Values...)> both(std::function<void(Values...)> first,
                                    std::function<void(Values...)> second) {
  if (!second) {
    return first;
  }
  return [first = std::move(first), second = std::move(second)](Values... values) {
    first(values...);
    second(values...);
  };
}

actors::RunCallbacks both(actors::RunCallbacks first, const actors::RunCallbacks& second) {
  return {.progress = both(std::move(first.progress), second.progress),
          .evaluated = both(std::move(first.evaluated), second.evaluated),
          .log = std::move(first.log), // the recorder forwards the lines
          .episode = both(std::move(first.episode), second.episode),
          .distributions = both(std::move(first.distributions), second.distributions)};
}

} // namespace

std::string run_curve(const Experiment& experiment, const std::filesystem::path& folder) {
  const bool played = plays(experiment);
  const auto points = read_curve(folder / "metrics.csv", headline(experiment),
                                 played ? "environment_steps" : "updates");
  return curve_svg(points, experiment.name() + ": " + headline(experiment),
                   played ? "environment steps" : "updates");
}

actors::RunConfig prepare_run(const Experiment& experiment) {
  actors::RunConfig config = plan_run(experiment);
  plan_workload(experiment, config);
  if (!config.recording.empty()) {
    config.recording = local_recording(experiment.recording().path());
  }
  if (!config.workload) {
    const auto environment = env::make_environment(config.environment);
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    environment->reset(config.seed, observation);
    const auto transitions =
        learner::transition_spec(environment->spec(), config.replay.n_step, config.replay.discount);
    if (!config.recording.empty())
      replay::check_fits(replay::Recording(config.recording).spec(), transitions, config.recording);
  }
  return config;
}

int run_experiment(const Experiment& experiment, actors::RunConfig config, const RunFolder& folder,
                   const std::filesystem::path& checkpoint, const RunOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  use_run_folder(config, folder.path(), options.processes || options.deployment);
  options.life.begin(folder.path(), config.actors.restarts, config.supervision.restart_minutes,
                     config.supervision.lost_seconds);
  std::atomic<bool> own_stop = false;
  std::atomic<bool>& stop = options.embedding ? options.embedding->stop : own_stop;
  std::optional<StopSignals> signals;
  if (!options.embedding) {
    signals.emplace(stop, options.grace_seconds >= 0 ? options.grace_seconds
                                                     : experiment.checkpoint().grace_seconds());
  }
  std::FILE* screen = options.json ? stderr : stdout;
  Recorder recorder({.folder = folder.path(),
                     .stop = config.stop,
                     .columns = metrics_columns(experiment),
                     .settings = settings_of(experiment),
                     .screen = options.quiet || options.embedding ? nullptr : screen,
                     .terminal = ::isatty(::fileno(screen)) == 1,
                     .now = [] { return std::chrono::system_clock::now(); },
                     .listener = options.embedding ? options.embedding->callbacks.log : nullptr});
  const auto shown = std::filesystem::absolute(folder.path()).lexically_normal();
  const auto dashboard =
      run_dashboard(options.dashboard, shown.parent_path().parent_path(), shown, options.keys);
  if (!std::filesystem::exists(folder.path() / "origin.json")) { // a resumed run already has one
    write_origin(folder.path(), present_origin(TROUPE_VERSION));
  }
  recorder.log("info", (checkpoint.empty() ? "training " : "continuing ") + experiment.name()
                           + " in " + folder.path().string());
  if (const std::string note = options.life.note(); !note.empty()) {
    recorder.log("warning", note);
  }
  for (const std::string& note : options.notes) {
    recorder.log("info", note);
  }
  ActorLauncher launcher(folder.path() / "config.textproto", {}, "head", options.life.keeper);
  actors::Deployment deployment = options.deployment.value_or(actors::Deployment{});
  if (deployment.nodes) {
    deployment.nodes->head_comes_back = options.interrupted_code != kDone;
  }
  if (options.processes) {
    deployment.head_port = options.port;
    deployment.start_process = [&](const actors::ProcessOrder& order) {
      return launcher.start(order);
    };
    deployment.outlives_head = options.life.keeper > 0;
  }
  deployment.without_takeover = options.without_takeover;
  deployment.head_restarts = options.life.restarts;
  deployment.operated = !options.embedding || options.dashboard.wanted;
  ServedHead served;
  deployment.listening = [&, nodes = deployment.listening](std::uint16_t port) {
    served.file.reset(); // the head found nothing to take over
    served.file = std::make_unique<HeadFile>(folder.path(), head_place(deployment, options, port));
    served.write(recorder);
    if (nodes) {
      nodes(port);
    }
  };
  Finished finished{.folder = folder.path()};
  try {
    auto callbacks = recorder.callbacks();
    callbacks.progress = [&, record = callbacks.progress](const actors::Progress& progress) {
      record(progress);
      served.write(recorder);
    };
    if (options.embedding) {
      callbacks = both(std::move(callbacks), options.embedding->callbacks);
    }
    finished.result = actors::run(config, folder.path(), checkpoint, deployment, callbacks, stop);
    served.file.reset();
    recorder.finish();
  } catch (const std::exception& failure) {
    recorder.finish();
    recorder.log("error", failure.what());
    recorder.ended(false);
    throw;
  }
  finished.video = make_video(experiment, folder, finished.result, recorder, stop);
  finished.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Summary summary = summarise(experiment, finished);
  if (!options.embedding) {
    print_summary(summary, finished, options.json);
  }
  if (!finished.result.error.empty() || !finished.result.interrupted) {
    recorder.ended(finished.result.error.empty());
  }
  const std::string cause =
      finished.result.error.empty() ? recorder.unwritten() : finished.result.error;
  if (!cause.empty()) {
    throw std::runtime_error(cause);
  }
  write_report(experiment, folder, summary, finished.video);
  if (!stop || !finished.result.interrupted || options.interrupted_code == kDone
      || options.embedding) {
    return kDone;
  }
  const std::string saved = finished.result.checkpoint.string();
  std::fprintf(stderr, "troupe: stopped before the run was over; %s\n",
               saved.empty() ? "it has no checkpoint" : ("its checkpoint is " + saved).c_str());
  return options.interrupted_code;
}

} // namespace troupe::experiments::commands
