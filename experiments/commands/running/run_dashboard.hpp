#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "experiments/dashboard/dashboard.hpp"

namespace troupe::experiments::commands {

/// --dashboard of the commands that train.
struct DashboardChoice {
  bool wanted = false;
  std::uint16_t port = 0; // 0: a free one
};
void add_dashboard_flags(CLI::App& command, DashboardChoice& choice);

/// Connects to the heads of live runs as `troupe stop` does; `keys` is the deployment's folder,
/// where it has one.
dashboard::Connect connect_to_heads(const std::string& keys);

/// The dashboard of a run in this process, beside the others in its folder of runs. `keys`: as
/// above. Null if it is not wanted. Prints the address to standard error. Throws
/// std::runtime_error if the port is taken.
std::unique_ptr<dashboard::Dashboard> run_dashboard(const DashboardChoice& choice,
                                                    const std::filesystem::path& run,
                                                    const std::string& keys);

} // namespace troupe::experiments::commands
