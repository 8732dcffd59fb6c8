#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "env/text/joined.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/running/resumption.hpp"
#include "experiments/commands/running/run_experiment.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/config/config.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {
namespace {

struct TrainOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string runs = "runs";
  RunOptions run;
};

/// Continues a run from its latest complete checkpoint.
int go_on(const std::filesystem::path& run, const std::vector<std::string>& overrides,
          RunOptions options) {
  const auto file = run / "config.textproto";
  const Experiment before = load_experiment(file);
  const Experiment experiment = load_experiment(file, overrides);
  check_changes(before, experiment);
  const auto config = prepare_run(experiment);
  actors::check_run(config, options.processes); // before the run gets the changed keys
  const RunFolder folder = RunFolder::open(run);
  const Resumption resumption = options.life.takes_over()
                                    ? prepare_takeover(folder, config)
                                    : prepare_resumption(folder, before, experiment, config);
  options.notes = resumption.notes;
  options.without_takeover = resumption.without_takeover;
  return run_experiment(experiment, config, folder, resumption.checkpoint, options);
}

/// A run over several processes has a head process too, which is restarted if it dies.
int watched(const RunOptions& options, const std::function<int(const RunOptions&)>& run) {
  if (!options.processes) {
    return run(options);
  }
  return watch_head([&](const HeadLife& life) {
    RunOptions lived = options;
    lived.life = life;
    return life.goes_on() ? go_on(life.run, {}, lived) : run(lived);
  });
}

int begin_training(const TrainOptions& options, const RunOptions& run) {
  const auto file = find_config(options.file, config_folders());
  const Experiment experiment = load_experiment(file, options.overrides);
  const auto config = prepare_run(experiment);
  actors::check_run(config, run.processes);
  const RunFolder folder = RunFolder::create(
      options.runs, experiment.name(), std::chrono::system_clock::now(), resolved_text(experiment));
  return run_experiment(experiment, config, folder, {}, run);
}

void train(const TrainOptions& options, int& exit_code) {
  if (options.file.empty()) {
    throw std::invalid_argument("name an experiment file or one of: "
                                + env::joined(config_names(config_folders())));
  }
  exit_code =
      watched(options.run, [&](const RunOptions& run) { return begin_training(options, run); });
}

struct ResumeOptions {
  StoredRunChoice run;
  std::vector<std::string> overrides;
  RunOptions options;
};

void resume(const ResumeOptions& given, int& exit_code) {
  const auto run = chosen_run(given.run);
  exit_code = watched(given.options, [&](const RunOptions& options) {
    return go_on(run, given.overrides, options);
  });
}

/// Stops the run after a checkpoint when the thread that started this process ends. Only the
/// watching process of a run with processes gets the signal; it passes it on to the head.
void end_with_parent(int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) {
    throw std::invalid_argument("--end-with-parent " + std::to_string(parent)
                                + ": the parent is process " + std::to_string(::getppid())
                                + "; name the process that starts this one");
  }
}

void add_run_flags(CLI::App& command, RunOptions& options) {
  command.add_flag(
      "--processes", options.processes,
      "runs each actor, shard, parameter server, replica and the evaluator in its own process");
  command
      .add_option("--port", options.port,
                  "port on 127.0.0.1 for the processes of --processes; default: a free one")
      ->check(CLI::Range(1, 65535));
  add_dashboard_flags(command, options.dashboard);
  command.add_flag("--json", options.json, "the summary as JSON; progress goes to standard error");
  command.add_flag("--quiet", options.quiet, "print only the summary");
  command
      .add_option_function<int>("--end-with-parent", end_with_parent,
                                "process that starts this one; its end stops the run")
      ->group(""); // hidden from --help: for programs that start runs, as the Python package does
}

} // namespace

void add_train(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("train", "Trains an agent");
  command->footer(
      "Example: troupe train quickstart --set seed=3 --set replay.shards=4\n"
      "`troupe list experiments` lists the included ones, `troupe list keys` the keys for --set.");
  auto options = std::make_shared<TrainOptions>();
  command->add_option("EXPERIMENT", options->file, "experiment file or name");
  add_overrides(*command, options->overrides,
                "key=value, may be repeated; a list as 1,2,3; key= for the default");
  command->add_option("--runs", options->runs, "folder for runs/<name>/<time>")
      ->capture_default_str();
  add_run_flags(*command, options->run);
  command->callback([options, &exit_code] { train(*options, exit_code); });
}

void add_resume(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("resume", "Resumes a run from its latest complete checkpoint");
  command->footer("Example: troupe resume\n"
                  "         troupe resume runs/quickstart/2026-11-21T10-00-00 --set "
                  "replay.shards=5 --set actors.environment=16\n"
                  "Items are redistributed if the number of shards changes. Keys that do not fit "
                  "the checkpoint (networks, environment, n_step, ...) are refused.");
  auto options = std::make_shared<ResumeOptions>();
  add_stored_run(*command, options->run,
                 "the run's folder, or s3://bucket/prefix/NAME/TIME of checkpoint.store, "
                 "whose newest checkpoint is fetched to RUNS/NAME/TIME");
  add_overrides(*command, options->overrides,
                "key=value that replaces the run's value; may be repeated");
  add_run_flags(*command, options->options);
  command->callback([options, &exit_code] { resume(*options, exit_code); });
}

} // namespace troupe::experiments::commands
