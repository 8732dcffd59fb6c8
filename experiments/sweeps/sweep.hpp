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
  std::string name;  // of its folder: "walker_walk_n_step=3_seed=1"
  std::string group; // the same without its seed
  std::filesystem::path file = {};
  std::vector<std::string> overrides = {}; // as for --set, its seed among them
  Experiment experiment = {};              // complete
  std::optional<double> goal = {};         // of the group
};

/// Whether the text is a sweep and not an experiment.
bool is_sweep(const std::string& text);

/// A sweep in Protobuf text format, with every default filled in and every rule checked; `source`
/// names the text in messages and gives the name where the text has none. Throws ConfigError.
Sweep parse_sweep(const std::string& text, const std::string& source);

/// Adds the flags "key=a,b" to a sweep. Throws ConfigError.
void add_varied(const std::vector<std::string>& varied, Sweep& sweep);

/// Its runs, experiment by experiment, the seeds innermost. Experiments are looked for beside
/// `source`, then in `folders`; each run's is loaded and checked. Throws ConfigError, with the
/// run's name where one run is at fault.
std::vector<SweepRun> plan_sweep(const Sweep& sweep, const std::filesystem::path& source,
                                 const std::vector<std::filesystem::path>& folders);

/// The state of a run.
struct RunState {
  enum class Kind : std::uint8_t { waiting, begun, done, failed } kind = Kind::waiting;
  std::filesystem::path folder = {}; // of the run, once it has begun
  std::string failure = {};          // its last words
  double value = 0;                  // done: of its headline (on_data.hpp)
  std::int64_t environment_steps = 0;
  std::int64_t updates = 0;
  double training_seconds = 0;
};

/// Reads the state of a run from its part of the sweep's folder. Throws ConfigError if the run
/// there was started with other keys, std::runtime_error if a result cannot be read.
RunState find_state(const std::filesystem::path& part, const SweepRun& run);

/// Parses the JSON printed at the end of a run. False for other text or an interrupted run.
bool read_result(const std::string& json, const Experiment& experiment, RunState& state);

/// One line per group: finished seeds, mean, deviation, minimum, maximum, goal.
std::string sweep_table(const std::vector<SweepRun>& runs, const std::vector<RunState>& states);

/// A row a run: run,group,seed,state,headline,value,environment_steps,updates,training_seconds.
std::string sweep_csv(const std::vector<SweepRun>& runs, const std::vector<RunState>& states);

/// A row an evaluation of a run: run,steps,value,minimum,maximum.
std::string sweep_curves(const std::vector<SweepRun>& runs, const std::vector<RunState>& states);

/// One self-contained page: the table, and the curve of each run.
std::string sweep_page(const std::string& name, const std::vector<SweepRun>& runs,
                       const std::vector<RunState>& states);

} // namespace troupe::experiments
