#pragma once

#include <CLI/App.hpp>

namespace troupe::experiments::commands {

/// Commands about a run that goes on, as those of commands.hpp.
void add_status(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_logs(CLI::App& app, int& exit_code);
void add_stop(CLI::App& app, int& exit_code);
void add_scale(CLI::App& app, int& exit_code);
void add_restart(CLI::App& app, int& exit_code);

} // namespace troupe::experiments::commands
