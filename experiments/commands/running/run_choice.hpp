#pragma once

#include <CLI/App.hpp>

#include <string>

#include "actors/run/control.hpp"
#include "experiments/run_folder/head_file.hpp"

namespace troupe::experiments::commands {

/// Which run a command operates.
struct RunChoice {
  std::string run; // its folder; empty: the newest below `runs` that is alive
  std::string runs = "runs";
  std::string keys;
};

/// Adds the flags --runs and --keys, and explains in the help how RUN is found; the command adds
/// RUN.
void add_run_choice(CLI::App& command, RunChoice& choice);

/// The help text about exit codes of every such command.
std::string operating_footer(const std::string& examples);

/// The address of a run's head. Throws std::invalid_argument if it listens only on the loopback
/// interface of another host, or if keys are missing.
actors::ControlPlace control_place(const LiveRun& live, const RunChoice& choice);

} // namespace troupe::experiments::commands
