#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "experiments/config/sweep.pb.h"

namespace troupe::experiments {

/// One run of a sweep.
struct SweepRun {
  std::string name;  // of its folder: "walker_walk_n_step=3_variant=no_fading_seed=1"
  std::string group; // the same without the seed
  std::filesystem::path file = {};
  std::vector<std::string> overrides = {}; // in the form of --set, including the seed
  Experiment experiment = {};              // complete
  std::optional<double> goal = {};         // of the group
};

/// Whether the text is a sweep rather than an experiment.
bool is_sweep(const std::string& text);

/// Parses a sweep in Protobuf text format, fills in every default and checks every rule. `source`
/// names the text in messages and is the sweep's name if the text sets none. Throws ConfigError.
Sweep parse_sweep(const std::string& text, const std::string& source);

/// Adds values from flags "key=a,b" to a sweep. Throws ConfigError.
void add_varied(const std::vector<std::string>& varied, Sweep& sweep);

/// Returns the runs of a sweep, experiment by experiment, with the seeds innermost. Experiments are
/// looked up in the folder of `source`, then in `folders`. Each run's experiment is loaded and
/// checked. Throws ConfigError, which contains the run's name if one run is at fault.
std::vector<SweepRun> plan_sweep(const Sweep& sweep, const std::filesystem::path& source,
                                 const std::vector<std::filesystem::path>& folders);

/// The state of a run.
struct RunState {
  enum class Kind : std::uint8_t { waiting, begun, done, failed } kind = Kind::waiting;
  std::filesystem::path folder = {}; // folder of the run, once it has begun
  std::string failure = {};          // the last line of its standard error, or how it ended
  double value = 0;                  // value of its headline metric (on_data.hpp), when done
  std::int64_t environment_steps = 0;
  std::int64_t updates = 0;
  double training_seconds = 0;
};

/// The latest run in <sweep>/<part>/<name>; empty if there is none. The earlier ones are abandoned
/// attempts of the same run, which died before their first checkpoint.
std::filesystem::path latest_run(const std::filesystem::path& folder);

/// Whether a folder of runs is such a <sweep>/<part>/<name>.
bool has_attempts(const std::filesystem::path& folder);

/// Reads the state of a run from its part of the sweep's folder. Throws ConfigError if the run
/// there was started with other keys, and std::runtime_error if a result cannot be read.
RunState find_state(const std::filesystem::path& part, const SweepRun& run);

/// Parses the JSON printed at the end of a run. Returns false for other text or an interrupted run.
bool read_result(const std::string& json, const Experiment& experiment, RunState& state);

/// One line per group: finished seeds, mean, deviation, minimum, maximum, goal.
std::string sweep_table(const std::vector<SweepRun>& runs, const std::vector<RunState>& states);

/// One row per run: run,group,seed,state,headline,value,environment_steps,updates,training_seconds.
std::string sweep_csv(const std::vector<SweepRun>& runs, const std::vector<RunState>& states);

/// One row per evaluation of a run: run,steps,value,minimum,maximum.
std::string sweep_curves(const std::vector<SweepRun>& runs, const std::vector<RunState>& states);

/// One self-contained page with the table and the curve of each run.
std::string sweep_page(const std::string& name, const std::vector<SweepRun>& runs,
                       const std::vector<RunState>& states);

} // namespace troupe::experiments
