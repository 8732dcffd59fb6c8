#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "experiments/dashboard/dashboard.hpp"

namespace troupe::experiments::commands {

/// The --dashboard flags of the commands that train.
struct DashboardChoice {
  bool wanted = false;
  std::uint16_t port = 0; // 0: any free port
};
void add_dashboard_flags(CLI::App& command, DashboardChoice& choice);

/// Connects to the heads of live runs as `troupe stop` does. `keys` is the folder of the cluster
/// keys, or empty.
dashboard::Connect connect_to_heads(const std::string& keys);

/// Starts a dashboard in this process for the runs in `runs`. It shows `selected` first, or the
/// newest run if that is empty. `keys`: see connect_to_heads(). Returns null if no dashboard is
/// wanted. Prints the address to standard error. Throws std::runtime_error if the port is taken.
std::unique_ptr<dashboard::Dashboard> run_dashboard(const DashboardChoice& choice,
                                                    const std::filesystem::path& runs,
                                                    const std::filesystem::path& selected,
                                                    const std::string& keys);

} // namespace troupe::experiments::commands
