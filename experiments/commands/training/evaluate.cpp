#include "experiments/commands/running/evaluate_run.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/commands/running/stored_recording.hpp"
#include "experiments/commands/running/trained_policy.hpp"
#include "experiments/commands/training/evaluate_recorded.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/config/plan_workload.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/device/safetensors.hpp"

namespace troupe::experiments::commands {
namespace {

/// Evaluates the checkpoint of a run on data, using the validation rows.
void evaluate_on_data(const Experiment& experiment, const CheckpointFolder& checkpoint, bool json) {
  actors::RunConfig config;
  plan_workload(experiment, config);
  const auto replica = config.workload();
  learner::ReplicaContext alone(nullptr, experiment.seed());
  replica->build(alone);
  replica->load(learner::read_safetensors(checkpoint.path / "learner.safetensors").tensors, {});
  const auto metrics = replica->evaluate(alone);
  if (json) {
    print_json({{"checkpoint", checkpoint.path.string()},
                {"updates", checkpoint.updates},
                {"metrics", metrics}});
    return;
  }
  std::printf("%s, checkpoint of %lld updates\n", experiment.name().c_str(),
              static_cast<long long>(checkpoint.updates));
  for (const auto& [name, value] : metrics) {
    std::printf("%-20s %.6g\n", name.c_str(), value);
  }
}

struct Options {
  StoredRunChoice run;
  std::vector<std::string> overrides;
  CheckpointChoice checkpoint;
  bool json = false;
  EvaluateOptions play;
  std::string video;
  std::string picture;
  RecordedEvaluation recorded;
};

void evaluate(Options options) {
  if (!options.recorded.recording.empty()) {
    options.recorded.recording = local_recording(options.recorded.recording);
  }
  const std::string run = chosen_run(options.run).string();
  const Experiment experiment =
      load_experiment(std::filesystem::path(run) / "config.textproto", options.overrides);
  const CheckpointFolder checkpoint = choose_checkpoint(run, options.checkpoint);
  if (is_on_data(experiment)) {
    if (!options.recorded.recording.empty()) {
      throw std::invalid_argument(
          "--on evaluates a policy; " + run
          + " is a run on data, which is evaluated on validation rows; omit it");
    }
    if (!options.video.empty() || !options.picture.empty()) {
      throw std::invalid_argument("--video and --picture show an environment; " + run
                                  + " is a run on data; omit them");
    }
    evaluate_on_data(experiment, checkpoint, options.json);
    return;
  }
  if (!options.recorded.recording.empty()) {
    evaluate_on_recording(experiment, checkpoint, options.recorded, options.json);
    return;
  }
  options.play.video = options.video;
  options.play.picture = options.picture;
  if (!options.json) {
    std::printf("%s, checkpoint of %lld updates of %s\n", experiment.environment().task().c_str(),
                static_cast<long long>(checkpoint.updates), run.c_str());
    options.play.on_episode = [](int episode, double episode_return) {
      std::printf("episode %d: return %.1f\n", episode + 1, episode_return);
      std::fflush(stdout);
    };
  }
  const auto returns = evaluate_checkpoint(experiment, checkpoint.path, options.play);
  const double mean =
      std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
  const auto [least, most] = std::minmax_element(returns.begin(), returns.end());
  if (options.json) {
    print_json({{"task", experiment.environment().task()},
                {"checkpoint", checkpoint.path.string()},
                {"updates", checkpoint.updates},
                {"mean_return", mean},
                {"returns", returns},
                {"video", options.video}});
    return;
  }
  std::printf("return %.1f (mean of %zu episodes, %.1f to %.1f)\n", mean, returns.size(), *least,
              *most);
  if (!options.video.empty()) {
    std::printf("video  %s\n", options.video.c_str());
  }
}

} // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "Evaluates a run's policy without exploration noise, or a run "
                                     "on data on its validation rows");
  command->footer("Example: troupe evaluate runs/quickstart/2026-11-21T10-00-00 --episodes 10 "
                  "--video agent.mp4\n"
                  "         troupe evaluate runs/hopper/2026-11-24T10-00-00 --on recorded\n"
                  "With --on nothing is played: the return is estimated from the episodes that "
                  "`troupe record` or `troupe dataset import` wrote.");
  auto options = std::make_shared<Options>();
  add_stored_run(*command, options->run, "the run's folder");
  CLI::Option* episodes =
      command->add_option("--episodes", options->play.episodes, "number of episodes")
          ->check(CLI::Range(1, 100'000))
          ->capture_default_str();
  add_checkpoint_flags(*command, options->checkpoint);
  command
      ->add_option("--set", options->overrides,
                   "key=value that overrides the run's; may be repeated; e.g. "
                   "environment.pixels.renderer=OPENGL for another renderer")
      ->allow_extra_args(false);
  CLI::Option* video =
      command->add_option("--video", options->video,
                          "the first episode as MP4, or as GIF where the name ends with .gif");
  CLI::Option* picture =
      command->add_option("--picture", options->picture, "PNG from the first episode");
  command->add_option("--size", options->play.video_size, "size of video and picture in pixels")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  RecordedEvaluation& recorded = options->recorded;
  CLI::Option* on =
      command
          ->add_option("--on", recorded.recording,
                       "folder of recorded episodes: estimates the discounted return "
                       "from them, by fitted Q evaluation and, where the actions have "
                       "probabilities, by importance sampling, and plays nothing")
          ->excludes(episodes)
          ->excludes(video)
          ->excludes(picture);
  command->add_option("--discount", recorded.discount, "with --on: discount; default: the run's")
      ->check(CLI::Range(0.01, 1.0))
      ->needs(on);
  command
      ->add_option("--fits", recorded.members,
                   "with --on: number of networks, each fitted to resampled episodes; the interval "
                   "depends on them")
      ->check(CLI::Range(2, 100))
      ->capture_default_str()
      ->needs(on);
  command->add_option("--fit-updates", recorded.fit.updates, "with --on: updates of each network")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}))
      ->capture_default_str()
      ->needs(on);
  command
      ->add_flag(
          "--explore", recorded.explore,
          "with --on: the policy explores as in training, instead of taking its best actions")
      ->needs(on);
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] { evaluate(*options); });
}

} // namespace troupe::experiments::commands
