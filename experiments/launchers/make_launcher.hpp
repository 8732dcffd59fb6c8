#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/cluster/cluster.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// Creates the launcher for a cluster file; NoLauncher for `none`. Throws std::invalid_argument if
/// a program is missing on this host, for Slurm outside an allocation (use a batch script there:
/// slurm_script.hpp), and for Kubernetes, whose pods `kubectl` starts.
std::unique_ptr<Launcher> make_launcher(const Cluster& cluster, LauncherKind kind,
                                        LaunchSettings settings);

/// The nodes to start, all with the same arguments. Each is started at its address, or at its name
/// if it has none; for Slurm and mpi.hostfile, hosts are assigned in order. Throws
/// std::invalid_argument if there are fewer hosts than nodes.
std::vector<NodeStart> node_starts(const Cluster& cluster, LauncherKind kind,
                                   const std::vector<actors::NodeResources>& nodes,
                                   const std::vector<std::string>& arguments);

} // namespace troupe::experiments::launchers
