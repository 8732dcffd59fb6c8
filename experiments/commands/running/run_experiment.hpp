#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/roles/checkpoint.hpp"
#include "actors/run/run.hpp"
#include "experiments/commands/running/head_watch.hpp"
#include "experiments/commands/running/run_dashboard.hpp"
#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {

/// A run inside another program, which gets its reports and ends it. That program keeps its signal
/// handlers, and nothing is printed.
struct Embedding {
  std::atomic<bool>& stop;
  actors::RunCallbacks callbacks = {};
};

struct RunOptions {
  bool processes = false;
  std::uint16_t port = 0; // where the processes meet; 0: a free one
  bool json = false;
  bool quiet = false;
  std::vector<std::string> notes = {}; // for the log, before it begins
  double grace_seconds = -1; // after SIGTERM, then it ends at once; 0: none; -1: the experiment's
  std::optional<actors::Deployment> deployment = {}; // on nodes, in place of `processes`
  int interrupted_code = 0;      // the exit code after SIGINT or SIGTERM, with a checkpoint
  std::string head_address = {}; // that others reach the head at; empty: where it listens
  std::uint16_t head_port = 0;   // and at which port; 0: where it listens
  std::optional<Embedding> embedding = {};
  DashboardChoice dashboard = {};
  std::string keys = {}; // the deployment's folder, where it has one
  HeadLife life = {};
  /// Of a head that takes over: as the Deployment's.
  std::function<std::filesystem::path()> without_takeover = {};
};

/// Plans the experiment except for its folder. Opens its data, or creates its environment once with
/// camera, models and OpenGL, to report errors before a run folder exists. Throws what
/// plan_workload and env::make_environment throw.
actors::RunConfig prepare_run(const Experiment& experiment);

/// As actors::check_run(); without the actors nothing is checked.
void check_run(const actors::RunConfig& config, bool processes);

/// As actors::verify_checkpoint(); without the actors nothing is checked.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// The evaluations so far of the run in `folder`, as read_curve() and curve_svg() show them.
std::string run_curve(const Experiment& experiment, const std::filesystem::path& folder);

/// Trains in `folder` as prepare_run() planned, from a checkpoint's folder or from the start:
/// progress, metrics, signals, a video of the trained agent, report and summary. Returns the exit
/// code; the last line on standard error is the first cause of a failure.
int run_experiment(const Experiment& experiment, actors::RunConfig config, const RunFolder& folder,
                   const std::filesystem::path& checkpoint, const RunOptions& options);

} // namespace troupe::experiments::commands
