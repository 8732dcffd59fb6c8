#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/running/record_episodes.hpp"
#include "experiments/commands/running/signals.hpp"
#include "experiments/commands/running/stored_recording.hpp"
#include "experiments/commands/running/stored_run.hpp"
#include "experiments/commands/running/trained_policy.hpp"
#include "experiments/commands/tools/recording_info.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "replay/objects/folder_copies.hpp"

namespace troupe::experiments::commands {
namespace {

struct RecordFlags {
  std::string source;
  std::string out;
  std::vector<std::string> overrides;
  CheckpointChoice checkpoint;
  bool random = false;
  bool json = false;
  RecordOptions record;
};

void record(RecordFlags options) {
  std::error_code ignored;
  const std::string address = replay::is_object_address(options.out) ? options.out : "";
  if (!address.empty()) {
    const auto copy = recording_copy(replay::parse_object_address(address, "--out"));
    options.out = new_folder(copy).string();
    check_new_recording(address);
    std::filesystem::create_directories(std::filesystem::absolute(copy).parent_path());
  }
  options.out = new_folder(options.out).string();
  if (!options.random) {
    options.source = local_run(options.source, "runs").string();
    check_is_run(options.source);
  }
  const auto file = options.random && !std::filesystem::is_directory(options.source, ignored)
                        ? find_config(options.source, config_folders())
                        : std::filesystem::path(options.source) / "config.textproto";
  const Experiment experiment = load_experiment(file, options.overrides);
  if (is_on_data(experiment)) {
    throw std::invalid_argument(options.source
                                + " learns from data; episodes are recorded in an environment");
  }
  if (!options.random) {
    options.record.checkpoint = choose_checkpoint(options.source, options.checkpoint).path;
  }
  std::atomic<bool> stop = false;
  const StopSignals signals(stop);
  options.record.stop = &stop;
  if (!options.json) {
    options.record.on_episode = [](std::int64_t episode, double total_reward) {
      std::printf("episode %lld: return %.1f\n", static_cast<long long>(episode), total_reward);
      std::fflush(stdout);
    };
  }
  record_episodes(experiment, options.out, options.record);
  if (!address.empty()) {
    store_recording(address);
  }
  show_recording(options.out, options.json);
}

} // namespace

void add_record(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "record", "Plays a run's policy, or random actions, and writes the episodes to a folder that "
                "`troupe train` learns from (recording { path: … })");
  command->footer(
      "Example: troupe record runs/td3_hopper/2026-11-24T10-00-00 --explore --steps 100000 --out "
      "hopper\n"
      "         troupe record sac_half_cheetah --random --episodes 100 --out random\n"
      "Ctrl-C ends the recording with what was played so far. Each action's probability is stored "
      "where the policy has one. `troupe dataset` shows, checks, imports and exports recordings.");
  auto options = std::make_shared<RecordFlags>();
  command
      ->add_option(
          "RUN", options->source,
          "the run's folder; with --random also an experiment, whose environment is played")
      ->required();
  command
      ->add_option(
          "--out", options->out,
          "the new folder; or s3://bucket/prefix/NAME, by way of recordings/bucket/prefix/NAME")
      ->required();
  command->add_option("--episodes", options->record.episodes, "number of episodes")
      ->check(CLI::Range(1, 100'000'000));
  command
      ->add_option("--steps", options->record.steps,
                   "agent steps in total; the last episodes are cut off there")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50));
  add_checkpoint_flags(*command, options->checkpoint);
  CLI::Option* explore = command->add_flag("--explore", options->record.explore,
                                           "explores as in training, instead of the best actions");
  command->add_flag("--random", options->random, "uniformly random actions")
      ->excludes(command->get_option("--checkpoint"))
      ->excludes(command->get_option("--best"))
      ->excludes(explore);
  command->add_option("--environments", options->record.environments, "environments played at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--seed", options->record.seed, "seed; default: the run's");
  command
      ->add_option("--set", options->overrides,
                   "key=value that overrides the run's; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] { record(*options); });
}

} // namespace troupe::experiments::commands
