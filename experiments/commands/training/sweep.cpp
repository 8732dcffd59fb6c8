#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/run_dashboard.hpp"
#include "experiments/commands/running/run_experiment.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/commands/training/sweeper.hpp"
#include "experiments/config/config.hpp"
#include "experiments/launchers/command_text.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "experiments/sweeps/sweep.hpp"

namespace troupe::experiments::commands {
namespace {

namespace fs = std::filesystem;
using Kind = RunState::Kind;

struct SweepOptions {
  std::vector<std::string> what; // a sweep, or several experiments
  std::string name;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> overrides;
  std::vector<std::string> varied;
  int jobs = 0;     // 0: as in the sweep file
  int attempts = 0; // 0: as in the sweep file
  std::string runs = "runs";
  bool processes = false;
  DashboardChoice dashboard = {};
  bool dry_run = false;
  bool json = false;
};

/// The sweep file, by path or name; empty if experiments were named.
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

/// The sweep that the flags and the file, if there is one, describe.
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

/// Checks the keys of each experiment and opens its environment or data set before the first run
/// starts.
void check_experiments(const std::vector<SweepRun>& runs, bool processes) {
  std::set<std::string> seen;
  for (const SweepRun& run : runs) {
    Experiment experiment = run.experiment;
    experiment.clear_seed();
    if (!seen.insert(experiment.SerializeAsString()).second) {
      continue;
    }
    try {
      actors::check_run(prepare_run(run.experiment), processes);
    } catch (const std::exception& failure) {
      throw std::invalid_argument(std::string(failure.what()) + " (run " + run.name + ")");
    }
  }
}

void print_result(const Sweeper& sweeper, const fs::path& folder, bool json) {
  if (!json) {
    std::printf("%s%s\n", sweep_table(sweeper.runs(), sweeper.states()).c_str(), folder.c_str());
    std::fflush(stdout); // keeps the order if standard output and error share a file
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
    std::string line = run.name + ": troupe train " + launchers::quoted(run.file.string());
    for (const std::string& assignment : run.overrides) {
      line += " --set " + launchers::quoted(assignment);
    }
    std::printf("%s\n", line.c_str());
  }
}

void sweep(const SweepOptions& options, int& exit_code) {
  const fs::path file = sweep_file(options);
  const Sweep sweep = chosen_sweep(options, file);
  if (sweep.name().empty() || fs::path(sweep.name()).filename() != sweep.name()) {
    throw std::invalid_argument("the sweep's name is \"" + sweep.name()
                                + "\"; give a folder name without / with --name");
  }
  std::vector<fs::path> folders = config_folders();
  auto runs = plan_sweep(sweep, file, folders);
  if (options.dry_run) {
    print_plan(runs);
    return;
  }
  check_experiments(runs, options.processes);
  const fs::path folder = fs::path(options.runs) / sweep.name();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail_at(folder, "cannot be created", error.value());
  }
  const FolderLock lock(folder, "this sweep");
  Sweeper sweeper({.name = sweep.name(),
                   .folder = folder,
                   .jobs = sweep.jobs(),
                   .attempts = sweep.attempts(),
                   .processes = options.processes,
                   .screen = options.json ? stderr : stdout},
                  std::move(runs));
  const auto dashboard = run_dashboard(options.dashboard, options.runs, {}, {});
  if (!sweeper.run()) {
    exit_code = kAborted;
    return;
  }
  print_result(sweeper, folder, options.json);
  if (sweeper.stopped()) {
    std::fprintf(stderr, "troupe: stopped by a signal; the same command continues\n");
  }
  const std::string failure = sweeper.failure();
  if (!failure.empty()) {
    throw std::runtime_error(failure);
  }
}

} // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "sweep",
      "Trains many runs: experiments, seeds and values of keys; can be interrupted and continued");
  command->footer(
      "Example: troupe sweep d4pg_states --jobs 2\n"
      "         troupe sweep walker_walk --seeds 1,2,3 --vary replay.n_step=1,3,5 --dashboard\n"
      "The same command continues an interrupted sweep and starts new combinations.\n"
      "`troupe list sweeps` lists the included sweeps, `troupe list sweep-keys` the "
      "keys of a sweep file.");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("WHAT", options->what, "sweep file or name, or experiments")->required();
  command->add_option("--seeds", options->seeds, "seeds of each experiment, as 1,2,3")
      ->delimiter(',');
  command
      ->add_option("--vary", options->varied,
                   "key=value,value: one run per value; repeated: one per combination")
      ->allow_extra_args(false);
  add_overrides(*command, options->overrides, "key=value of every run; may be repeated");
  command->add_option("--jobs", options->jobs, "runs at a time")->check(CLI::Range(1, 1024));
  command
      ->add_option("--attempts", options->attempts,
                   "for each run; a failed run continues from its latest checkpoint")
      ->check(CLI::Range(1, 100));
  command->add_option("--runs", options->runs, "folder for runs/<sweep>/<run>")
      ->capture_default_str();
  command->add_option("--name", options->name, "name of the sweep's folder");
  command->add_flag("--processes", options->processes, "each run's actors in separate processes");
  add_dashboard_flags(*command, options->dashboard);
  command->add_flag("--dry-run", options->dry_run, "only print the commands of the runs");
  command->add_flag("--json", options->json,
                    "the results as JSON; progress goes to standard error");
  command->callback([options, &exit_code] { sweep(*options, exit_code); });
}

} // namespace troupe::experiments::commands
