#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/run/run.hpp"
#include "experiments/commands/running/head_watch.hpp"
#include "experiments/commands/running/run_dashboard.hpp"
#include "experiments/config/experiment.pb.h"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::commands {

/// Options of a run inside another program, which receives its reports and can stop it. The program
/// keeps its signal handlers, and nothing is printed.
struct Embedding {
  std::atomic<bool>& stop;
  actors::RunCallbacks callbacks = {};
};

struct RunOptions {
  bool processes = false;
  std::uint16_t port = 0; // where the processes connect to the head; 0: any free port
  bool json = false;
  bool quiet = false;
  std::vector<std::string> notes = {}; // lines for the log, written before the run begins
  double grace_seconds = -1;           // from SIGTERM to a forced end; 0: none; -1: as configured
  std::optional<actors::Deployment> deployment = {}; // for nodes; replaces `processes`
  int interrupted_code = 0;      // exit code after SIGINT or SIGTERM once a checkpoint is written
  std::string head_address = {}; // address at which others reach the head; empty: where it listens
  std::uint16_t head_port = 0;   // its port; 0: where the head listens
  std::optional<Embedding> embedding = {};
  DashboardChoice dashboard = {};
  std::string keys = {}; // folder of the cluster keys, or empty
  HeadLife life = {};
  /// For a head that takes over; see actors::Deployment.
  std::function<std::filesystem::path()> without_takeover = {};
};

/// Plans the experiment except for its folder. Opens the data set, or creates the environment once
/// with its camera, models and OpenGL, so that errors are reported before a run folder exists.
/// Throws the exceptions of plan_workload() and env::make_environment().
actors::RunConfig prepare_run(const Experiment& experiment);

/// The evaluations so far of the run in `folder`, in the form that read_curve() and curve_svg()
/// produce.
std::string run_curve(const Experiment& experiment, const std::filesystem::path& folder);

/// Trains in `folder` as prepare_run() planned, from a checkpoint folder or from the start. Handles
/// progress, metrics, signals, the video of the trained agent, report and summary. Returns the exit
/// code. After a failure, the last line on standard error is its first cause.
int run_experiment(const Experiment& experiment, actors::RunConfig config, const RunFolder& folder,
                   const std::filesystem::path& checkpoint, const RunOptions& options);

} // namespace troupe::experiments::commands
