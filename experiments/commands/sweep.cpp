#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/run_experiment.hpp"
#include "experiments/commands/sweeper.hpp"
#include "experiments/config.hpp"
#include "experiments/folder_lock.hpp"
#include "experiments/sweep.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
using Kind = RunState::Kind;

struct SweepOptions {
  std::vector<std::string> what; // a sweep, or experiments
  std::string name;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> overrides;
  std::vector<std::string> varied;
  int jobs = 0;     // 0: as the sweep says
  int attempts = 0; // likewise
  std::string runs = "runs";
  bool processes = false;
  bool dry_run = false;
  bool json = false;
};

/// A sweep's file, by path or name; empty when what was named is an experiment, or several.
fs::path sweep_file(const SweepOptions& options) {
  if (options.what.size() != 1) {
    return {};
  }
  std::vector<fs::path> folders = sweep_folders();
  for (const fs::path& folder : config_folders()) {
    folders.push_back(folder);
  }
  const fs::path file = find_config(options.what[0], folders, {"sweep", "experiment"});
  return is_sweep(read_config_file(file)) ? file : fs::path();
}

/// The sweep of the flags and of the file, if there is one.
Sweep chosen_sweep(const SweepOptions& options, const fs::path& file) {
  Sweep sweep;
  if (!file.empty()) {
    sweep = parse_sweep(read_config_file(file), file.string());
  } else {
    for (const std::string& experiment : options.what) {
      sweep.add_experiment(experiment);
    }
    sweep.add_seed(1);
    sweep.set_jobs(1);
    sweep.set_attempts(2);
    sweep.set_name(options.what.size() == 1 ? fs::path(options.what[0]).stem().string() + "_sweep"
                                            : "sweep");
  }
  if (!options.name.empty()) {
    sweep.set_name(options.name);
  }
  if (!options.seeds.empty()) {
    sweep.clear_seed();
    sweep.mutable_seed()->Add(options.seeds.begin(), options.seeds.end());
  }
  if (options.jobs > 0) {
    sweep.set_jobs(options.jobs);
  }
  if (options.attempts > 0) {
    sweep.set_attempts(options.attempts);
  }
  for (const std::string& assignment : options.overrides) {
    sweep.add_set(assignment);
  }
  add_varied(options.varied, sweep);
  return sweep;
}

/// Each experiment's environment (or data set) is made once, and its keys are looked at together,
/// before the first run begins, not after a night.
void check_experiments(const std::vector<SweepRun>& runs, bool processes) {
  std::set<std::string> seen;
  for (const SweepRun& run : runs) {
    Experiment experiment = run.experiment;
    experiment.clear_seed();
    if (!seen.insert(experiment.SerializeAsString()).second) {
      continue;
    }
    try {
      commands::check_run(prepare_run(run.experiment), processes);
    } catch (const std::exception& failure) {
      throw std::invalid_argument(std::string(failure.what()) + " (run " + run.name + ")");
    }
  }
}

void print_result(const Sweeper& sweeper, const fs::path& folder, bool json) {
  if (!json) {
    std::printf("%s%s\n", sweep_table(sweeper.runs(), sweeper.states()).c_str(), folder.c_str());
    std::fflush(stdout); // what follows on standard error comes last in one file, too
    return;
  }
  Json runs = Json::array();
  for (std::size_t i = 0; i < sweeper.runs().size(); ++i) {
    const RunState& state = sweeper.states()[i];
    runs.push_back({{"name", sweeper.runs()[i].name},
                    {"group", sweeper.runs()[i].group},
                    {"seed", sweeper.runs()[i].experiment.seed()},
                    {"done", state.kind == Kind::done},
                    {"value", state.value},
                    {"environment_steps", state.environment_steps},
                    {"updates", state.updates},
                    {"training_seconds", state.training_seconds},
                    {"run", state.folder.string()},
                    {"error", state.failure}});
  }
  print_json({{"sweep", folder.string()}, {"interrupted", sweeper.stopped()}, {"runs", runs}});
}

void print_plan(const std::vector<SweepRun>& runs) {
  for (const SweepRun& run : runs) {
    std::string line = run.name + ": troupe train " + run.file.string();
    for (const std::string& assignment : run.overrides) {
      line += " --set " + assignment;
    }
    std::printf("%s\n", line.c_str());
  }
}

void sweep(const SweepOptions& options, int& exit_code) {
  const fs::path file = sweep_file(options);
  const Sweep sweep = chosen_sweep(options, file);
  if (sweep.name().empty() || fs::path(sweep.name()).filename() != sweep.name()) {
    throw std::invalid_argument("the sweep's name is \"" + sweep.name()
                                + "\"; a folder's name without / is needed: --name");
  }
  std::vector<fs::path> folders = config_folders();
  auto runs = plan_sweep(sweep, file, folders);
  if (options.dry_run) {
    print_plan(runs);
    exit_code = kDone;
    return;
  }
  check_experiments(runs, options.processes);
  const fs::path folder = fs::path(options.runs) / sweep.name();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail_at(folder, "cannot be made", error.value());
  }
  const FolderLock lock(folder, "this sweep");
  Sweeper sweeper({.name = sweep.name(),
                   .folder = folder,
                   .jobs = sweep.jobs(),
                   .attempts = sweep.attempts(),
                   .processes = options.processes,
                   .screen = options.json ? stderr : stdout},
                  std::move(runs));
  if (!sweeper.run()) {
    exit_code = kAborted;
    return;
  }
  print_result(sweeper, folder, options.json);
  if (sweeper.stopped()) {
    std::fprintf(stderr, "troupe: stopped by a signal; the same command goes on\n");
  }
  const std::string failure = sweeper.failure();
  if (!failure.empty()) {
    throw std::runtime_error(failure);
  }
  exit_code = kDone;
}

} // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "sweep",
      "Trains many runs: experiments, seeds and values of keys; can be stopped and goes on");
  command->footer(
      "Example: troupe sweep d4pg_states --jobs 2\n"
      "         troupe sweep walker_walk --seeds 1,2,3 --vary replay.n_step=1,3,5\n"
      "The same command again goes on where it was stopped, and begins what is new.\n"
      "`troupe list sweeps` names what comes with it, `troupe list sweep-keys` the keys "
      "of a sweep's file.");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("what", options->what, "a sweep's file or name, or experiments")->required();
  command->add_option("--seeds", options->seeds, "of each experiment, as 1,2,3")->delimiter(',');
  command
      ->add_option("--vary", options->varied,
                   "key=value,value: a run for each; may be given again, then for each combination")
      ->allow_extra_args(false);
  command->add_option("--set", options->overrides, "key=value of every run; may be given again")
      ->allow_extra_args(false);
  command->add_option("--jobs", options->jobs, "runs at a time")->check(CLI::Range(1, 1024));
  command
      ->add_option("--attempts", options->attempts,
                   "for each run: one that fails goes on from its latest checkpoint")
      ->check(CLI::Range(1, 100));
  command->add_option("--runs", options->runs, "folder for runs/<sweep>/<run>")
      ->capture_default_str();
  command->add_option("--name", options->name, "of the sweep's folder");
  command->add_flag("--processes", options->processes,
                    "each run's actors in processes of their own");
  command->add_flag("--dry-run", options->dry_run, "only names the runs, as commands");
  command->add_flag("--json", options->json,
                    "the results as JSON; progress goes to standard error");
  command->callback([options, &exit_code] { sweep(*options, exit_code); });
}

} // namespace troupe::experiments::commands
