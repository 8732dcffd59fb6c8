#pragma once

#include <CLI/App.hpp>

#include <chrono>
#include <string>

#include "experiments/head_file.hpp"
#ifdef TROUPE_HAS_ACTORS
#include "actors/control.hpp"
#endif

namespace troupe::experiments::commands {

/// Which run a command operates.
struct RunChoice {
  std::string run; // its folder; empty: the newest below `runs` that is alive
  std::string runs = "runs";
  std::string keys;
};

/// Flags --runs and --keys; RUN is the command's own. Says in the help how RUN is found.
void add_run_choice(CLI::App& command, RunChoice& choice);

/// The words about exit codes that the help of every such command ends with.
std::string operating_footer(const std::string& examples);

#ifdef TROUPE_HAS_ACTORS
/// Where the head of a run is. Throws std::invalid_argument: it is of this host's loopback alone
/// and we are on another, or keys are needed.
actors::ControlPlace control_place(const LiveRun& live, const RunChoice& choice);
#endif

} // namespace troupe::experiments::commands
