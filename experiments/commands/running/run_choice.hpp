#pragma once

#include <CLI/App.hpp>

#include <string>

#include "actors/run/control.hpp"
#include "experiments/run_folder/head_file.hpp"

namespace troupe::experiments::commands {

/// The run that a command operates on.
struct RunChoice {
  std::string run; // its folder; empty: the newest live run below `runs`
  std::string runs = "runs";
  std::string keys;
};

/// Adds the flags --runs and --keys, and explains in the help how RUN is looked up. The command
/// itself adds RUN.
void add_run_choice(CLI::App& command, RunChoice& choice);

/// The part of the help text about exit codes, which all these commands share.
std::string operating_footer(const std::string& examples);

/// The address of the run's head. Throws std::invalid_argument if keys are missing or the head
/// listens only on the loopback interface of another host.
actors::ControlPlace control_place(const LiveRun& live, const RunChoice& choice);

} // namespace troupe::experiments::commands
