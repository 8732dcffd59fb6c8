#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/cluster/cluster.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// Creates the launcher of a cluster file; NoLauncher for `none`. Throws std::invalid_argument for
/// a missing program on this host, for Slurm outside an allocation (its job is a script:
/// slurm_script.hpp, SlurmJob), and for Kubernetes, whose pods `kubectl` starts.
std::unique_ptr<Launcher> make_launcher(const Cluster& cluster, LauncherKind kind,
                                        LaunchSettings settings);

/// The nodes to start, with the same arguments each, on their addresses or, without one, their
/// names; Slurm's nodes and those of mpi.hostfile in order. Throws std::invalid_argument if there
/// are fewer hosts than nodes.
std::vector<NodeStart> node_starts(const Cluster& cluster, LauncherKind kind,
                                   const std::vector<actors::NodeResources>& nodes,
                                   const std::vector<std::string>& arguments);

} // namespace troupe::experiments::launchers
