#pragma once

#include <CLI/App.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// A run that need not be live.
struct StoredRunChoice {
  std::string run; // its folder or address in an object store; empty: the newest below `runs`
  std::string runs = "runs";
};

/// Adds RUN and --runs.
void add_stored_run(CLI::App& command, StoredRunChoice& choice, const std::string& help);

/// The folder of the run, which is fetched if it is in an object store. Throws
/// std::invalid_argument if there is no such run.
std::filesystem::path chosen_run(const StoredRunChoice& choice);

/// Adds --set with this help, and --minutes, which appends a value of stop.minutes to `overrides`.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides, const std::string& help);

} // namespace troupe::experiments::commands
